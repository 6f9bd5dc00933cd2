/** What is used of web-push, which has no types of its own. */
declare module 'web-push' {
  interface WebPush {
    generateRequestDetails(
      subscription: { endpoint: string; keys: { p256dh: string; auth: string } },
      payload: string,
      options: {
        vapidDetails: { subject: string; publicKey: string; privateKey: string };
        TTL: number;
        contentEncoding: 'aes128gcm';
      },
    ): { headers: Record<string, string | number>; body: Uint8Array };
    generateVAPIDKeys(): { publicKey: string; privateKey: string };
  }
  const webPush: WebPush;
  export default webPush;
}
