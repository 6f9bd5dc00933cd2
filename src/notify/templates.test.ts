/** Templates: data is data in every slot, and a template can do nothing but print. */
import { describe, expect, it } from 'vitest';
import type { Channel, Content } from './notification.js';
import { createRenderer } from './templates.js';

const nasty = `"><img src=x onerror=alert(1)>'{{7*7}}`;

const render = (channel: Channel, fields: Record<string, string>, data: object): Promise<Content> =>
  createRenderer().render({ kind: 'k', channel, fields, data: data as never });

describe('N33: a value in a slot', () => {
  it('is escaped in the text of HTML and in its attributes', async () => {
    const { html } = await render(
      'email',
      { html: `<a title="{{ x }}" class='{{ x }}'>{{ x }}</a>` },
      { x: nasty },
    );
    expect(html).not.toMatch(/<img|onerror=alert\(1\)>/);
    expect(String(html)).toContain('&quot;&gt;&lt;img');
    expect(String(html)).toContain('{{7*7}}');
  });

  it('is a piece of a URL, never its scheme', async () => {
    const { url } = await render(
      'push',
      { title: 't', body: 'b', url: 'https://example.test/?q={{ x }}' },
      { x: nasty },
    );
    expect(new URL(String(url)).searchParams.get('q')).toBe(nasty);
    const scheme = render('push', { title: 't', body: 'b', url: '{{ x }}' }, { x: 'javascript:alert(1)' });
    await expect(scheme).rejects.toMatchObject({ code: 'template-failed' });
  });

  it('is a whole link of HTML by the filter href, and no script', async () => {
    const fields = { html: '<a href="{{ x | href }}">x</a>' };
    expect(await render('email', fields, { x: 'javascript:alert(1)' })).toEqual({
      html: '<a href="#">x</a>',
    });
    expect(await render('email', fields, { x: 'https://example.test/?a=1&b="' })).toEqual({
      html: '<a href="https://example.test/?a=1&amp;b=&quot;">x</a>',
    });
  });

  it('appears literally where nothing is markup', async () => {
    const fields = { subject: '{{ x }}', text: '{{ x }}' };
    expect(await render('email', fields, { x: nasty })).toEqual({ subject: nasty, text: nasty });
    expect(await render('sms', { text: '{{ x }}' }, { x: nasty })).toEqual({ text: nasty });
    expect(await render('push', { title: '{{ x }}', body: 'b' }, { x: nasty })).toMatchObject({
      title: nasty,
    });
  });

  it('cannot break a line of a header', async () => {
    await expect(render('email', { subject: '{{ x }}' }, { x: 'a\r\nBcc: b' })).rejects.toMatchObject({
      code: 'template-failed',
      field: 'k.email.subject',
    });
  });
});

describe('a template', () => {
  it('that needs a name that is not there fails, and its error holds no data', async () => {
    const failing = render('sms', { text: '{{ code }} {{ missing }}' }, { code: '482913' });
    const error = await failing.then(
      () => undefined,
      (thrown: Error) => thrown,
    );
    expect(error?.message).toContain('k.sms.text');
    expect(`${error?.message} ${error?.stack}`).not.toContain('482913');
  });

  it.each([
    '{{ x.constructor }}',
    '{{ "".constructor.constructor }}',
    "{% include '/etc/passwd' %}",
    "{% render 'package.json' %}",
    '{% for i in (1..100000000) %}{{ i }}{% endfor %}',
  ])('cannot run code, read files or run for ever: %s', async (text) => {
    const outcome = await render('sms', { text }, { x: {} }).then(
      (content) => String(content['text']),
      () => 'refused',
    );
    expect(['refused', '', '[object Object]']).toContain(outcome);
  });
});
