"""Training from a folder with a script: submission to the queue, the log on the screen, the results in the folder."""
