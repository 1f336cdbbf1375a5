import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { joinClasses } from "@/components/classes.ts";
import css from "./Document.module.css";

interface Props {
  onFile: (file: File) => void;
  children: ComponentChildren;
}

/** An area that takes one dropped file; a button elsewhere must offer the same by keyboard. */
export function FileDrop({ onFile, children }: Props) {
  const [over, setOver] = useState(false);
  const drag = (event: DragEvent) => {
    if (event.dataTransfer?.types.includes("Files")) {
      event.preventDefault();
      setOver(true);
    }
  };
  const drop = (event: DragEvent) => {
    const file = event.dataTransfer?.files[0];
    setOver(false);
    if (file) {
      event.preventDefault();
      onFile(file);
    }
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keyboard users choose the file with the button
    <div
      class={joinClasses(css.drop, over && css.over)}
      onDragEnter={drag}
      onDragOver={drag}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      {children}
    </div>
  );
}
