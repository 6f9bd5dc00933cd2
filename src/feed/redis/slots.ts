/** Which slot of a Cluster a hash tag belongs to: CRC-16 (XModem) of the tag, as the Cluster specification says. */
const slots = 16_384;

export function slotOfTag(tag: string): number {
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
    crc &= 0xffff;
  }
  return crc % slots;
}
