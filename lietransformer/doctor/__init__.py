"""Checks of this machine and of a results folder, each finding with its remedy. Changes nothing."""
