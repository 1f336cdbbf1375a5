import { formatCount } from "@/format.ts";
import type { ChainName } from "@/proof/chains.ts";
import css from "./ChainPicture.module.css";
import type { ChainLink, ChainNode, NodeState, Picture } from "./picture.ts";
import { buildRecordAddress } from "./place.ts";

const STEP = 98;
const MARGIN = 52;
const AXIS = 96;
const HEIGHT = 176;
const RADIUS = 15;
const SEAL = 36;

const SIGNS: Readonly<Record<NodeState, string>> = { sound: "✓", broken: "✕", missing: "?", unread: "…" };
const WORDS: Readonly<Record<NodeState, string>> = {
  sound: "sound",
  broken: "broken",
  missing: "missing",
  unread: "not verified",
};

interface Props {
  chain: ChainName;
  picture: Picture;
  /** Called with the record to open. */
  onGo: () => void;
}

/** A verified chain as a drawing from left to right, and as a list for keyboard users. */
export function ChainPicture({ chain, picture, onGo }: Props) {
  const { nodes, links, branch, checkpoint } = picture;
  const width = 2 * MARGIN + (nodes.length - 1) * STEP;
  // Only a checkpoint needs space above the chain.
  const top = checkpoint ? 0 : AXIS - 48;
  return (
    <figure class={css.figure}>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: keyboard users must reach a scrolling area */}
      <section class={css.scroll} tabIndex={0} aria-label="Picture of the chain">
        <svg
          width={width}
          height={HEIGHT - top}
          viewBox={`0 ${top} ${width} ${HEIGHT - top}`}
          role="img"
          aria-label={picture.text}
        >
          {links.map((link, index) => (
            <Link key={`link ${nodes[index]?.label}`} link={link} from={positionOf(index)} to={positionOf(index + 1)} />
          ))}
          {checkpoint && <Seal node={checkpoint.node} at={positionOf(checkpoint.at)} />}
          {branch && <Branch node={branch.node} from={positionOf(branch.at - 1)} />}
          {nodes.map((node, index) => (
            <Place key={node.label} node={node} at={positionOf(index)} />
          ))}
        </svg>
      </section>
      <figcaption>{picture.text}</figcaption>
      <ol class={css.places}>
        {nodes.map((node) => (
          <li key={node.label} class={css[`is-${node.state}`]}>
            <Listed chain={chain} node={node} onGo={onGo} />
          </li>
        ))}
      </ol>
    </figure>
  );
}

function positionOf(index: number): number {
  return MARGIN + index * STEP;
}

function Listed({ chain, node, onGo }: { chain: ChainName; node: ChainNode; onGo: () => void }) {
  const linked = node.sequence !== undefined && node.state !== "missing";
  return (
    <>
      {linked ? (
        <a href={buildRecordAddress(chain, node.sequence ?? 0)} onClick={onGo}>
          {node.label}
        </a>
      ) : (
        <span>{node.label}</span>
      )}
      <span>{WORDS[node.state]}</span>
    </>
  );
}

function Place({ node, at }: { node: ChainNode; at: number }) {
  return (
    <g>
      <circle cx={at} cy={AXIS} r={RADIUS} class={css[node.state]} />
      <text x={at} y={AXIS + 5} class={css.sign}>
        {SIGNS[node.state]}
      </text>
      <text x={at} y={AXIS + 36} class={css.label}>
        {node.label}
      </text>
      {node.kind === "tip" && (
        <text x={at} y={AXIS + 54} class={css.note}>
          newest
        </text>
      )}
    </g>
  );
}

function Link({ link, from, to }: { link: ChainLink; from: number; to: number }) {
  const middle = (from + to) / 2;
  return (
    <g>
      <line x1={from + RADIUS} y1={AXIS} x2={to - RADIUS} y2={AXIS} class={css[`link-${link.state}`]} />
      {link.state === "broken" && <path d={`M${middle - 7} ${AXIS - 7}l14 14m0 -14l-14 14`} class={css.cross} />}
      {link.left > 0 && (
        <text x={middle} y={AXIS - 10} class={css.note}>
          {formatCount(link.left)} more
        </text>
      )}
    </g>
  );
}

/** A checkpoint, drawn above its last record. */
function Seal({ node, at }: { node: ChainNode; at: number }) {
  return (
    <g>
      <line x1={at} y1={SEAL + 12} x2={at} y2={AXIS - RADIUS} class={css.tie} />
      <path d={`M${at} ${SEAL - 13}l13 13-13 13-13-13z`} class={css[node.state]} />
      <text x={at} y={SEAL + 5} class={css.sign}>
        {SIGNS[node.state]}
      </text>
      <text x={at} y={SEAL - 20} class={css.note}>
        {node.label}
      </text>
    </g>
  );
}

/** The second record of a fork, with the same predecessor. */
function Branch({ node, from }: { node: ChainNode; from: number }) {
  const [x, y] = [from + STEP / 2, HEIGHT - 20];
  return (
    <g>
      <path
        d={`M${from + RADIUS} ${AXIS + 3}Q${x} ${AXIS + 6} ${x} ${y - 10}`}
        class={css["link-broken"]}
        fill="none"
      />
      <circle cx={x} cy={y} r={10} class={css.broken} />
      <text x={x} y={y + 4} class={css.sign}>
        {SIGNS.broken}
      </text>
      <text x={x + 16} y={y + 4} class={css.left}>
        {node.label}
      </text>
    </g>
  );
}
