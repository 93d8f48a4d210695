// What was dropped on the page: files, and the files of folders with their paths.

import type { NamedFile } from "./uploads";

/** Files of a drop. Folders are read to their ends; hidden files are left out. */
export async function droppedFiles(transfer: DataTransfer): Promise<NamedFile[]> {
  // All entries are taken before anything is awaited: afterwards the drop is over.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter((entry): entry is FileSystemEntry => Boolean(entry));
  if (!entries.length) return chosenFiles([...transfer.files]);
  return (await Promise.all(entries.map((entry) => filesOf(entry, "")))).flat();
}

/** Files of a field, with their folders where a folder was chosen. */
export function chosenFiles(files: File[]): NamedFile[] {
  return files.map((file) => ({ file, name: file.webkitRelativePath || file.name })).filter(({ name }) => !isHidden(name));
}

async function filesOf(entry: FileSystemEntry, folder: string): Promise<NamedFile[]> {
  const name = `${folder}${entry.name}`;
  if (isHidden(name)) return [];
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    return [{ file, name }];
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: NamedFile[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    for (const each of some) found.push(...(await filesOf(each, `${name}/`)));
  }
}

function isHidden(name: string): boolean {
  return name.split("/").some((part) => part.startsWith("."));
}
