/** Saves a file by the browser's download. */
export function saveFile(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  // A running download keeps its own reference to the content.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
