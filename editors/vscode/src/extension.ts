// The extension: what VS Code starts and ends.

import * as vscode from "vscode";
import { register } from "./commands";
import { Server } from "./server";

let server: Server | undefined;

export function activate(context: vscode.ExtensionContext): void {
  server = new Server(context);
  context.subscriptions.push(...register(server));
  void server.restart();
}

export async function deactivate(): Promise<void> {
  await server?.dispose();
}
