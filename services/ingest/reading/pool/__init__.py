"""The worker's side of the security boundary: starts parsing children, gives them files in turn, and judges how they end."""
