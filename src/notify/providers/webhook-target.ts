/**
 * Where a webhook may connect to. Every address is checked at the moment of the connection, after the name was resolved
 * for it: a name that changes its mind between the check and the call gains nothing. Private, loopback, link-local and
 * reserved addresses are refused, in whatever form they are written, unless the allow list names them.
 */
import { lookup as dnsLookup, type LookupAddress } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';

const ranges4 =
  '0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 ' +
  '192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4';
// Beside the private ones: all ranges that carry an IPv4 address inside (mapped, NAT64, 6to4, Teredo).
const ranges6 =
  '::/128 ::1/128 ::/96 ::ffff:0:0/96 64:ff9b::/96 64:ff9b:1::/48 100::/64 2001::/32 2001:db8::/32 2002::/16 fc00::/7 ' +
  'fe80::/10 fec0::/10 ff00::/8';

const blocked = new BlockList();
for (const [ranges, family] of [
  [ranges4, 'ipv4'],
  [ranges6, 'ipv6'],
] as const) {
  for (const range of ranges.split(' ')) {
    const [address = '', prefix] = range.split('/');
    blocked.addSubnet(address, Number(prefix), family);
  }
}

export class TargetRefused extends Error {
  override readonly name = 'TargetRefused';
  readonly code = 'target-refused';
}

export interface TargetCheck {
  /** For a host that is an address itself: nothing is looked up for it. */
  refuses(url: URL): boolean;
  /** Resolves and checks; fails with `target-refused` when any address of the name is refused. */
  lookupFor(url: URL): LookupFunction;
}

/** `allow`: hosts that may be called whatever their address: `host` or `host:port`, exactly as in the URL. */
export function createTargetCheck(
  allow: readonly string[] = [],
  resolve: typeof dnsLookup = dnsLookup,
): TargetCheck {
  const allowed = new Set(allow.map((entry) => entry.toLowerCase()));
  const isAllowed = (url: URL): boolean => {
    const port = url.port || (url.protocol === 'https:' ? '443' : '80');
    return allowed.has(url.hostname) || allowed.has(`${url.hostname}:${port}`);
  };
  return {
    refuses(url) {
      const host = url.hostname.replace(/^\[|\]$/g, '');
      return isIP(host) !== 0 && !isAllowed(url) && isBlockedAddress(host);
    },
    lookupFor: (url) => (hostname, options, callback) => {
      resolve(hostname, { ...options, all: true }, (error, answer) => {
        const addresses = answer as LookupAddress[] | undefined;
        if (error || addresses === undefined || addresses.length === 0) {
          callback(error ?? Object.assign(new Error('no address'), { code: 'ENOTFOUND' }), '');
          return;
        }
        if (!isAllowed(url) && addresses.some(({ address }) => isBlockedAddress(address))) {
          callback(new TargetRefused('the target resolves to an address that may not be called'), '');
          return;
        }
        if (options.all) callback(null, addresses);
        else callback(null, addresses[0]?.address ?? '', addresses[0]?.family);
      });
    },
  };
}

export function isBlockedAddress(address: string): boolean {
  const family = isIP(address.split('%')[0] ?? '');
  if (family === 0) return true;
  return blocked.check(address.split('%')[0] as string, family === 4 ? 'ipv4' : 'ipv6');
}
