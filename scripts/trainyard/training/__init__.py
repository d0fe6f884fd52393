"""From a folder with a training script to a job in the queue: its log on the screen, its results in the folder."""
