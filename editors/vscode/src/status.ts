// The status bar item: starting, ready, or failed with the reason.

import * as vscode from "vscode";

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("torchperf", vscode.StatusBarAlignment.Right);

  constructor() {
    this.item.name = "torchperf";
    this.item.command = "torchperf.showLog";
    this.item.show();
  }

  starting(): void {
    this.show("$(sync~spin) torchperf", "starting");
  }

  ready(detail: string, fixes: boolean): void {
    this.show(fixes ? "$(check) torchperf" : "$(check) torchperf: no fixes", detail);
  }

  failed(reason: string): void {
    this.show("$(error) torchperf: failed", reason);
    this.item.backgroundColor = new vscode.ThemeColor("statusBarItem.errorBackground");
  }

  dispose(): void {
    this.item.dispose();
  }

  private show(text: string, detail: string): void {
    this.item.text = text;
    this.item.tooltip = detail;
    this.item.backgroundColor = undefined;
  }
}
