"""One endpoint that speaks the OpenAI API: how it is asked, how its stream is read, and every way in which it can fail."""
