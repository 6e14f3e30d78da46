"""Simulator: replays recorded crawls under other policies, without a network."""
