import type { ComponentChildren } from "preact";
import css from "./Button.module.css";
import { joinClasses } from "./classes.ts";
import { Icon, type IconName } from "./Icon.tsx";

interface Props {
  children?: ComponentChildren;
  /** `primary` once a view at most; `danger` for what cannot be taken back; `quiet` in rows and headers. */
  kind?: "primary" | "plain" | "danger" | "quiet";
  type?: "button" | "submit";
  icon?: IconName;
  /** Needed where there is an icon alone. */
  label?: string;
  disabled?: boolean;
  /** Work is under way: the button stays where it is and takes no click. */
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
