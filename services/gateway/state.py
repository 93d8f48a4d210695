"""What the gateway keeps in the message store."""

from kit.shared_state import API_KEY_USES, API_KEYS

STATE = (API_KEYS, API_KEY_USES)
