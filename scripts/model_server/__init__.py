"""The model server: `python3 -m model_server` answers requests to one model of one folder.

`contract` is what others may import: what a model's card says. It needs nothing but Python's own modules.
"""
