"""What callers do with what a function returns tells what it is."""

from linting import ALL, check, findings, program, table

RETURNED = {
    "one of several": """
        def loop(model, loader, opt):
            for batch in loader:
                loss, logs = step(model, batch)
                loss.backward()
                opt.step()

        def step(model, batch):
            loss = model.compute(np.stack(batch))
            return loss, {"loss": loss.item()}  # TPF101
        """,
    "of a method that stands before its caller": """
        class Trainer:
            def step(self, batch):
                loss = self.compute(np.stack(batch))
                if loss > 3:  # TPF301
                    return loss
                self.log("loss", float(loss))  # TPF101
                return loss

            def loop(self, loader):
                for batch in loader:
                    loss = self.step(batch)
                    loss.backward()
                    self.opt.step()
        """,
    "another one": """
        class Trainer:
            def step(self, batch):
                score = self.score(np.stack(batch))
                loss = self.compute(batch)
                print(float(score))
                return score, loss

            def loop(self, loader):
                for batch in loader:
                    score, loss = self.step(batch)
                    loss.backward()
        """,
    "one or another": """
        class Trainer:
            def step(self, batch, scored):
                score = self.score(np.stack(batch))
                loss = self.compute(batch)
                print(float(loss))
                if scored:
                    return score
                return loss

            def loop(self, loader):
                for batch in loader:
                    loss = self.step(batch, False)
                    loss.backward()
        """,
}


@table(RETURNED)
def test_a_result_that_a_caller_uses_as_a_tensor(code: str) -> None:
    check(code, ALL, only=frozenset(("TPF101", "TPF301")))


def test_the_reason_names_the_caller() -> None:
    options = type(ALL)(scope=ALL.scope, explain=True)
    (told,) = findings(program(RETURNED["one of several"]), options)
    assert "its caller: `loss`: `.backward(...)` is called" in told


def test_what_is_taken_from_an_object_lies_there_as_well() -> None:
    code = """
        def train(model, loader, opt):
            for batch in loader:
                out = model(**np.load(batch))
                loss = out.loss
                loss.backward()
                opt.step()
                print(out.loss.item(), out.other)  # TPF101
        """
    check(code)
