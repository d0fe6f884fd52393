"""The images of an installation: listed, saved, loaded, mirrored."""
