"""`sparkherd doctor`: what a manager or a worker would need here, looked at before one is started."""
