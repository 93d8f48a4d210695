"""What keeps a job alive, counts its tries and finds it again."""
