import { useEffect, useState } from "preact/hooks";

/** Distance from the screen at which a chart is drawn, so that it is there when it is scrolled to. */
const MARGIN = "200px";

/** Tells whether a box is on the screen or close to it. */
export function useVisible(box: { current: HTMLElement | null }): boolean {
  const [visible, setVisible] = useState(false);
  useEffect(() => {
    const observer = new IntersectionObserver((entries) => setVisible(entries.at(-1)?.isIntersecting ?? false), {
      rootMargin: MARGIN,
    });
    if (box.current) {
      observer.observe(box.current);
    }
    return () => observer.disconnect();
  }, []);
  return visible;
}
