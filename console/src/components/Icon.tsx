const PATHS = {
  pulse: "M1.5 8.5h2.8L6.5 3l3 10 2-4.5h3",
  query: "M3 4h10M3 8h6M3 12h4M10.2 10.2l3.3 3.3M11 8.8a2.2 2.2 0 1 1-4.4 0",
  download: "M8 2v8m0 0L4.8 6.8M8 10l3.2-3.2M2.5 13.5h11",
  database:
    "M3 4c0-1.1 2.2-2 5-2s5 .9 5 2-2.2 2-5 2-5-.9-5-2zm0 0v8c0 1.1 2.2 2 5 2s5-.9 5-2V4M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
  chain: "M6.5 9.5l3-3M7 4.8l1.3-1.3a2.9 2.9 0 0 1 4.2 4.2L11.2 9M9 11.2l-1.3 1.3a2.9 2.9 0 0 1-4.2-4.2L4.8 7",
  pencil: "M3 13l.7-3L10.8 2.9l2.3 2.3L6 12.3 3 13zM9.3 4.4l2.3 2.3",
  pen: "M2 14h12M4 11l.6-2.4 5.9-5.9 1.8 1.8-5.9 5.9L4 11z",
  key: "M10.5 9a3.5 3.5 0 1 0-3.3-2.3L2 12v2h2.2v-1.6h1.6v-1.6l1.5-1.5c.9.5 2 .7 3.2-.3zM11 5h.01",
  code: "M5.5 4.5L2 8l3.5 3.5M10.5 4.5L14 8l-3.5 3.5",
  menu: "M2.5 4h11M2.5 8h11M2.5 12h11",
  close: "M3.5 3.5l9 9m0-9l-9 9",
  sun: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1.2v1.6M8 13.2v1.6M1.2 8h1.6M13.2 8h1.6M3.2 3.2l1.1 1.1M11.7 11.7l1.1 1.1M12.8 3.2l-1.1 1.1M4.3 11.7l-1.1 1.1",
  moon: "M13.5 9.6A5.8 5.8 0 1 1 6.4 2.5a4.6 4.6 0 0 0 7.1 7.1z",
  out: "M6 2.5H3v11h3M10.5 5L13.5 8l-3 3M13.5 8H6.5",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  check: "M2.5 8.5l3.5 3.5 7.5-8",
  warning: "M8 2l6.5 11.5h-13L8 2zM8 6.5v3.2M8 11.6h.01",
  error: "M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM5.8 5.8l4.4 4.4m0-4.4l-4.4 4.4",
  info: "M8 14.5a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zM8 7.3v4M8 4.8h.01",
  up: "M8 13V3m0 0L4 7m4-4l4 4",
  down: "M8 3v10m0 0l4-4m-4 4L4 9",
  refresh: "M13.5 8a5.5 5.5 0 1 1-1.7-4M13.5 2v3h-3",
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zM10.7 10.7L14 14",
  people:
    "M6 7.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.5 13.5c0-2.6 1.9-4 4.5-4s4.5 1.4 4.5 4M10.5 2.7a2.5 2.5 0 0 1 0 4.6M12.3 9.8c1.4.5 2.2 1.8 2.2 3.7",
  plug: "M5.5 2v3.5M10.5 2v3.5M3.5 5.5h9v2.2a4.5 4.5 0 0 1-9 0zM8 12.2v2.3",
  layers: "M8 2l6 3.2-6 3.2-6-3.2L8 2zM2 8.3l6 3.2 6-3.2M2 11.3l6 3.2 6-3.2",
  table: "M2 3h12v10H2zM2 6.5h12M2 9.8h12M6.5 6.5V13",
  shield: "M8 1.8l5.2 1.9v4c0 3.2-2.2 5.4-5.2 6.5-3-1.1-5.2-3.3-5.2-6.5v-4L8 1.8zM5.7 7.9l1.7 1.7 3-3.2",
  document: "M3.5 1.5h6l3 3v10h-9zM9.5 1.5v3h3M5.5 8h5M5.5 11h5",
  inbox: "M2.5 9.5h3l1 2h3l1-2h3M2.5 9.5v4h11v-4L11.5 3h-7l-2 6.5z",
  list: "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01",
  plus: "M8 3v10M3 8h10",
  bell: "M8 2a4 4 0 0 0-4 4v3l-1.5 2.5h11L12 9V6a4 4 0 0 0-4-4zM6.5 13.5a1.6 1.6 0 0 0 3 0",
  send: "M14 2L7 9M14 2L9.5 14 7 9 2 6.5z",
} as const;

export type IconName = keyof typeof PATHS;

interface Props {
  name: IconName;
  /** Text for screen readers; without it the icon is decoration. */
  label?: string;
}

/** A 16 px line icon in the colour of the text around it. */
export function Icon({ name, label }: Props) {
  const said = label === undefined ? { "aria-hidden": true as const } : { role: "img" as const, "aria-label": label };
  return (
    // biome-ignore lint/a11y/noSvgWithoutTitle: aria-label contains the name, or the icon is hidden
    <svg width="16" height="16" viewBox="0 0 16 16" {...said}>
      <path
        d={PATHS[name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}
