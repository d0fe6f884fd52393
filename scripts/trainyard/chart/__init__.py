"""The installed chart: rendering by Helm, releases and what remains of them, and probable causes of failures."""
