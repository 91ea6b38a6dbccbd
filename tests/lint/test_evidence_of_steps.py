"""What a step repeats, and is reported although code elsewhere is meant to do it."""

from __future__ import annotations

from linting import check, table

ARRAYS = {
    "in a dict that a step of training or of validation returns": """
        class Trainer:
            def train_step(self, batch):
                loss = self.loss(self.network(batch["data"]), batch["target"])
                self.scaler.scale(loss).backward()
                self.scaler.step(self.optimizer)
                return {"loss": loss.detach().cpu().numpy()}  # TPF102

            def validation_step(self, batch):
                output = torch.relu(self.network(batch["data"]))
                hits = output.sum(dim=(0, 2))
                hits = hits.detach().cpu().numpy()  # TPF102
                result = {"hits": hits[1:], "all": output.cpu().numpy()}  # TPF102
                return result
        """,
    "for code that needs it, or as the whole result": """
        class Policy(nn.Module):
            def forward(self, x: Tensor):
                return torch.relu(x).cpu().numpy()

        def sample_step(x: Tensor):
            y = torch.relu(x)
            return solver.solve(y.cpu().numpy()), y.cpu().numpy()
        """,
    "in a loop that only infers": """
        @torch.inference_mode()
        def segment(files, processor):
            for file in files:
                mask = torch.argmax(processor(file), 0)
                save(mask.cpu().numpy())

        def segment_by_rows(files, processor):
            with torch.no_grad():
                for file in files:
                    masks = torch.argmax(processor(file), 0)
                    for i in range(4):
                        save(masks[i, 1].cpu().numpy())  # TPF102
        """,
    "in a loop that goes backward too": """
        def fit(files, model):
            model.eval()
            for file in files:
                loss = model(file)
                loss.backward()
                save(torch.relu(loss).cpu().numpy())  # TPF102
        """,
}
OPERATIONS = {
    "a step repeats it": """
        class Loss(nn.Module):
            def forward(self, poses: Tensor, mask: Tensor):
                return masked_select(inv(poses), mask)

        def inv(x: Tensor):
            return torch.linalg.inv(x)  # TPF404

        def masked_select(x: Tensor, mask: Tensor):
            return torch.masked_select(x, mask)  # TPF402
        """,
    "nothing shows a step": """
        def inv(x: Tensor):
            return torch.linalg.inv(x)
        """,
}


@table(ARRAYS)
def test_arrays_that_steps_and_inference_make(code: str) -> None:
    check(code)


@table(OPERATIONS)
def test_operations_that_steps_repeat(code: str) -> None:
    check(code)
