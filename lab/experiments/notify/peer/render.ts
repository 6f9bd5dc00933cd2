/** The text of an order by the same template engine on both sides, parsed once. */
import { Liquid } from 'liquidjs';

const liquid = new Liquid({ strictVariables: true });
const subject = liquid.parse('Order {{ number }}');
const text = liquid.parse('Thank you.');

export async function renderOrder(
  number: number,
): Promise<{ readonly subject: string; readonly text: string }> {
  return { subject: await liquid.render(subject, { number }), text: await liquid.render(text, { number }) };
}
