"""Simulation of crawls in many shards: balance, messages between shards, and politeness."""
