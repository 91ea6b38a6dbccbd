"""Loops that collect experience: what a round does once per rollout is done in each step."""

from __future__ import annotations

import pytest
from linting import check

ROLLOUTS = {
    "a rollout, then epochs over it": """
        def learn(agent: nn.Module, envs, optimizer, obs: Tensor, updates: int):
            for update in range(updates):
                rewards = torch.zeros(128, device="cuda")
                for t in range(128):
                    obs, rewards[t], done, info = envs.step(agent(obs))
                print(rewards.mean().item())  # TPF101
                for epoch in range(4):
                    for batch in obs.split(32):
                        agent(batch).sum().backward()
                        optimizer.step()
        """,
    "epochs alone": """
        def learn(agent: nn.Module, optimizer, obs: Tensor, updates: int):
            for update in range(updates):
                rewards = torch.zeros(128, device="cuda")
                print(rewards.mean().item())
                for batch in obs.split(32):
                    agent(batch).sum().backward()
                    optimizer.step()
        """,
    "a loop over runs that roll out": """
        def learn(agent: nn.Module, envs, optimizer, obs: Tensor, updates: int):
            for seed in range(3):
                print(agent(obs).mean().item())
                for update in range(updates):
                    for t in range(128):
                        obs, reward, done, info = envs.step(agent(obs))
                    agent(obs).sum().backward()
                    optimizer.step()
        """,
    "a solver's step gives one result": """
        def sample(model: nn.Module, solver, latents: Tensor, images: int):
            for image in range(images):
                print(latents.mean().item())
                for t in solver.timesteps:
                    latents = solver.step(model(latents, t), t, latents).prev_sample
        """,
}


@pytest.mark.parametrize("name", ROLLOUTS)
def test_a_round_with_a_rollout_is_a_step(name: str) -> None:
    check(ROLLOUTS[name])
