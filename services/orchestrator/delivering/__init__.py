"""Mails an answer when the message asks for it ("… and mail it to anna@example.org"): after the answer, as a step of the run."""
