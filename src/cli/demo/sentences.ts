/** Small talk for the demo world: harmless sentences put together by chance. */
const openings = [
  'Yesterday I',
  'At last I',
  'This morning I',
  'Slowly but surely I',
  'Against all odds I',
  'After lunch I',
  'For once I',
];
const deeds = [
  'planted tomatoes on the balcony',
  'finished the book about rivers',
  'repaired the old bicycle',
  'learned to bake flat bread',
  'watched the cranes fly south',
  'found the missing chess piece',
  'walked along the mill race',
  'tuned the piano by ear',
  'counted the stairs of the tower',
  'mended the garden gate',
];
const endings = [
  '.',
  ' and it worked.',
  '. Would do it again.',
  '. Pictures later.',
  ', more or less.',
  '. Who joins next time?',
];

/** `random` gives numbers from 0 to 1. */
export function sentence(random: () => number): string {
  const pick = (list: readonly string[]): string => list[Math.floor(random() * list.length)] ?? '';
  return `${pick(openings)} ${pick(deeds)}${pick(endings)}`;
}
