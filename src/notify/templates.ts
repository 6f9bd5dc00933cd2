/**
 * Text out of templates and data, in Liquid: logic-light, and unable to run code. Guarantees: a value is escaped for the
 * slot that it is printed in, a value is never compiled as a template, an unknown name is an error and not an empty
 * place, and an error names the slot but never the data.
 */
import { createHash } from 'node:crypto';
import type { Liquid, Template } from 'liquidjs';
import { groundError, invalidInput } from '../errors.js';
import type { JsonValue } from '../queue/index.js';
import { notifyError } from './errors.js';
import type { Channel, Content, JsonObject } from './notification.js';

/** The slots of a channel: the text of each is a Liquid template, or a function of the data. */
export type TemplateFields = Readonly<Record<string, string | ((data: never) => JsonValue)>>;

/**
 * Slots by channel: email `subject`, `text`, `html`; sms `text`; push `title`, `body`, `url`; inbox `title`, `body`,
 * `url`; webhook `type` (what happened) and `data` (a function; default: the data itself).
 */
export type Templates = Readonly<Partial<Record<Channel, TemplateFields>>>;

const slots: Readonly<Record<Channel, readonly string[]>> = {
  email: ['subject', 'text', 'html'],
  sms: ['text'],
  push: ['title', 'body', 'url'],
  inbox: ['title', 'body', 'url'],
  webhook: ['type', 'data'],
};
/** One line: a line break in them would begin a header of its own, or is not shown. */
const oneLine = new Set(['subject', 'title', 'type', 'url']);
/** Well above what any channel can show, and a bound for a template that loops. */
const charactersMax = 200_000;
const compiledMax = 1_000;

export interface Renderer {
  render(request: {
    readonly kind: string;
    readonly channel: Channel;
    readonly fields: TemplateFields;
    readonly data: JsonObject;
  }): Promise<Content>;
}

export function createRenderer(): Renderer {
  const engines = new Map<'html' | 'url' | 'plain', Promise<Liquid>>();
  const compiled = new Map<string, Template[]>();

  const engineOf = (escape: 'html' | 'url' | 'plain'): Promise<Liquid> => {
    const engine = engines.get(escape) ?? loadEngine(escape);
    engines.set(escape, engine);
    return engine;
  };

  const fill = async (slot: string, text: string, data: JsonObject): Promise<string> => {
    const escape = slot === 'html' ? 'html' : slot === 'url' ? 'url' : 'plain';
    const engine = await engineOf(escape);
    const name = createHash('sha256').update(`${escape}:${text}`).digest('base64');
    let template = compiled.get(name);
    if (template === undefined) {
      if (compiled.size >= compiledMax) compiled.clear();
      template = engine.parse(text);
      compiled.set(name, template);
    }
    return (await engine.render(template, data)) as string;
  };

  return {
    async render({ kind, channel, fields, data }) {
      const content: Record<string, JsonValue> = {};
      for (const [slot, template] of Object.entries(fields)) {
        if (!slots[channel].includes(slot)) {
          throw invalidInput(
            `kinds.${kind}.templates.${channel}`,
            slot,
            `one of ${slots[channel].join(', ')}`,
          );
        }
        const field = `${kind}.${channel}.${slot}`;
        content[slot] =
          typeof template === 'function'
            ? (template as (data: JsonObject) => JsonValue)(data)
            : await fill(slot, template, data).catch((cause: unknown) => {
                throw templateFailed(field, cause);
              });
        checkSlot(field, slot, content[slot]);
      }
      if (channel === 'webhook') content['data'] ??= data;
      return content;
    },
  };
}

/** The cause is named by its kind alone: the engine's own text quotes the template, and may quote a value. */
function templateFailed(field: string, cause: unknown): Error {
  const what = cause instanceof Error ? cause.name : 'an error';
  return notifyError('template-failed', `the template ${field} could not be rendered (${what})`, { field });
}

function checkSlot(field: string, slot: string, value: JsonValue | undefined): void {
  if (slot === 'data') return;
  if (typeof value !== 'string') throw notifyError('template-failed', `${field} gave no text`, { field });
  if (oneLine.has(slot) && /[\r\n\0]/.test(value))
    throw notifyError('template-failed', `${field}: a line break is not allowed here`, { field });
  if (slot === 'url' && value !== '' && !/^(https?:\/\/|\/)/i.test(value))
    throw notifyError('template-failed', `${field}: only http, https and paths are allowed here`, { field });
  if (value.length > charactersMax)
    throw notifyError('template-failed', `${field}: longer than ${charactersMax} characters`, { field });
}

async function loadEngine(escape: 'html' | 'url' | 'plain'): Promise<Liquid> {
  const liquid = await import('liquidjs').catch((cause: unknown) => {
    throw groundError('driver-missing', 'templates need liquidjs: npm install liquidjs', { cause });
  });
  const outputEscape = { html: escapeHtml, url: escapeUrl, plain: plainText }[escape];
  const engine = new liquid.Liquid({
    strictVariables: true,
    strictFilters: true,
    ownPropertyOnly: true,
    outputEscape,
    // No files: a template cannot include what was not given to it.
    templates: {},
    renderLimit: 1_000,
    parseLimit: charactersMax,
    memoryLimit: 10_000_000,
  });
  engine.registerFilter('href', safeLink);
  return engine;
}

const plainText = (value: unknown): string => (typeof value === 'string' ? value : String(value ?? ''));

const htmlEntities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
  '`': '&#96;',
};

/** Safe in the text of an element and in an attribute in either kind of quotes. */
function escapeHtml(value: unknown): string {
  return plainText(value).replace(/[&<>"'`]/g, (character) => htmlEntities[character] as string);
}

/** `<a href="{{ link | href }}">`: a whole link that comes from data; anything but a web or mail address leads nowhere. */
function safeLink(value: unknown): string {
  const link = plainText(value);
  return /^(https?:\/\/|mailto:|\/)/i.test(link) ? link : '#';
}

/** A value is a piece of a URL, never its scheme or host. */
function escapeUrl(value: unknown): string {
  return encodeURIComponent(plainText(value));
}
