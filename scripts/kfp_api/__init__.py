"""The service behind `kfp.Client`: KFP's API v2beta1 over the team's own objects.

It has no state. A run is a Workflow, a recurring run a CronWorkflow; the rest are ConfigMaps.
Each request acts with its caller's token, so the API server alone decides what anybody may see or do.

    app        routes, and what holds for every request          errors    refusals as KFP writes them
    caller     who asks: a client with the token, the teams      ids       names of team and object
    listing    filter, order and pages                           records   ConfigMaps
    experiments, pipelines, runs, recurring                      the parts of the API
    shown      a Workflow as KFP's run                           artifacts what runs left in the store
    turns      nobody takes all threads
"""
