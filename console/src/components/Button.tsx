import type { ComponentChildren } from "preact";
import css from "./Button.module.css";
import { joinClasses } from "./classes.ts";
import { Icon, type IconName } from "./Icon.tsx";

interface Props {
  children?: ComponentChildren;
  /** `primary` at most once in a view; `danger` for irreversible actions; `quiet` in rows and headers. */
  kind?: "primary" | "plain" | "danger" | "quiet";
  type?: "button" | "submit";
  icon?: IconName;
  /** Required for a button with only an icon. */
  label?: string;
  disabled?: boolean;
  /** Disables the button during work, without moving it. */
  busy?: boolean;
  /** As wide as its container. */
  wide?: boolean;
  onClick?: (event: MouseEvent) => void;
}

export function Button({
  children,
  kind = "plain",
  type = "button",
  icon,
  label,
  disabled,
  busy,
  wide,
  onClick,
}: Props) {
  return (
    <button
      type={type}
      class={joinClasses(css.button, css[kind], wide && css.wide, children === undefined && css.square)}
      aria-label={label}
      title={children === undefined ? label : undefined}
      aria-busy={busy}
      disabled={disabled || busy}
      onClick={onClick}
    >
      {busy ? <span class={css.spinner} aria-hidden="true" /> : icon && <Icon name={icon} />}
      {children !== undefined && <span>{children}</span>}
    </button>
  );
}
