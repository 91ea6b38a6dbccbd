// The page's side of the worker.

import type { Account, Linted, Reply, Request, Settings } from "./protocol";

type Unnumbered = Request extends infer One ? (One extends Request ? Omit<One, "id"> : never) : never;

export class Linter {
  private readonly worker: Worker;
  private readonly waiting = new Map<number, (reply: Reply) => void>();
  private last = 0;

  constructor(script: URL) {
    this.worker = new Worker(script, { type: "module" });
    this.worker.onmessage = ({ data }: MessageEvent<Reply>) => this.settle(data);
    this.worker.onerror = (event) => {
      const failed = event.message || "the worker could not be started";
      for (const id of [...this.waiting.keys()]) this.settle({ id, failed });
    };
  }

  lint(text: string, settings: Settings): Promise<Linted> {
    return this.ask<Linted>({ kind: "lint", text, settings });
  }

  // Null if the text has no such finding.
  why(text: string, settings: Settings, place: string): Promise<Account | null> {
    return this.ask<Account | null>({ kind: "why", text, settings, place });
  }

  private async ask<Answer>(request: Unnumbered): Promise<Answer> {
    const id = ++this.last;
    const reply = await new Promise<Reply>((resolve) => {
      this.waiting.set(id, resolve);
      this.worker.postMessage({ ...request, id });
    });
    if ("failed" in reply) throw new Error(reply.failed);
    return JSON.parse(reply.json) as Answer;
  }

  private settle(reply: Reply): void {
    this.waiting.get(reply.id)?.(reply);
    this.waiting.delete(reply.id);
  }
}

// Calls `run` with the newest request alone, once the run before has ended.
export class Newest<Asked> {
  private next: { asked: Asked } | undefined;
  private running = false;

  constructor(private readonly run: (asked: Asked) => Promise<void>) {}

  async ask(asked: Asked): Promise<void> {
    this.next = { asked };
    if (this.running) return;
    this.running = true;
    try {
      while (this.next) {
        const now: Asked = this.next.asked;
        this.next = undefined;
        await this.run(now);
      }
    } finally {
      this.running = false;
    }
  }
}
