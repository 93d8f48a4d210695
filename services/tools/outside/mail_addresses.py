"""E-mail addresses, checked by their form alone: whether a domain takes mail is for the mail server to find out."""

from email.headerregistry import Address

from email_validator import EmailNotValidError, validate_email
from email_validator.types import ValidatedEmail


def parse_address(text: str) -> Address:
    """A bare address, its domain in ASCII. Raises ValueError."""
    return _address(_validated(text))


def parse_sender(text: str) -> Address:
    """An address that may have a name before it: `Groundwork <assistant@example.com>`. Raises ValueError."""
    return _address(_validated(text, allow_display_name=True))


def _validated(text: str, *, allow_display_name: bool = False) -> ValidatedEmail:
    try:
        return validate_email(
            text,
            allow_display_name=allow_display_name,
            allow_smtputf8=False,  # few servers take non-ASCII names before the @
            check_deliverability=False,
        )
    except EmailNotValidError as error:
        raise ValueError(f"{text!r:.100} is not an e-mail address: {error}") from error


def _address(valid: ValidatedEmail) -> Address:
    name = valid.display_name or ""
    if not name.isprintable():
        raise ValueError("a name before an e-mail address must be one line of printable characters")
    return Address(name, addr_spec=valid.ascii_email or valid.normalized)
