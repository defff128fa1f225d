"""What can be asked of snapshots and replays: frames in, frame out."""
