"""The recipes of docs/fleet.md."""

FLEET = ()
