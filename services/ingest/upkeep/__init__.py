"""What one worker does for all: looking for what is half done, lost or left over."""
