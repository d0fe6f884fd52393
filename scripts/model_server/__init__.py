"""The model server: `python3 -m model_server` answers requests to one model in one folder.

Other packages may import `contract`, the format of a model's card, which only needs the standard library.
"""
