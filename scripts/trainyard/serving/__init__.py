"""Serving of models: registered versions, deployment of a version, and rollback.

    with shelf.opened(kube, known) as models:
        card = models.find("digits@3f2a…")
    values = plan.values(known, kube.namespace, card, wish)
    apply.send(kube, render.objects(values, kube.namespace), "digits")

A model is registered in the team's folder of the bucket, `models/NAME/VERSION/` with its card, model.json. Its server
is rendered from charts/model-server.
"""
