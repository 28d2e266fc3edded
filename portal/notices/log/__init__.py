"""The portal's log as a channel."""
