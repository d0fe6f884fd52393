"""The model server: `python3 -m model_server` answers requests to one model of one folder.

Others may import `contract`: what a model's card says. It needs nothing but Python's own modules.
"""
