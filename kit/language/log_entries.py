"""Where the entries of a log begin: each is read as a unit of its own, when it is ingested and when it is quoted."""

import re

LOG_ENTRY = re.compile(
    r"^(?:(?=.{0,48}?(?<!\d)\d{1,2}:\d{2}:\d{2}(?!\d))"
    r"|(?=\W?\d{1,4}[-./]\d{1,2}[-./]\d{1,4},?[T ]{1,2}\d{1,2}:\d{2}(?!\d))"
    r"|(?=\[?1\d{9}(?:\d{3})?(?:\.\d{1,9})?[\]\s,:])"
    r"|(?=\W{0,2}(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b))\S",
    re.MULTILINE,
)
"""The first character of an entry of a log, which begins with what logs begin with: a time of day, to the second, in its first 48
characters (syslog, ISO 8601, access logs); a date with a time; seconds since 1970; the weight of the entry."""
