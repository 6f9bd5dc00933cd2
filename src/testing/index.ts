export {
  ChildServer,
  type ChildServerOptions,
  findFreePort,
  findServerUser,
  type ServerUser,
} from './child-server.js';
export { findPostgresBinaries, type PostgresBinaries, type PostgresKind } from './postgres-binaries.js';
export { type PostgresServer, type PostgresServerOptions, startPostgresServer } from './postgres-server.js';
export { Proxy, type ProxyOptions, startProxy } from './proxy.js';
export { type RunServer, type RunServers, startRunServers } from './servers.js';
export {
  accepts,
  faultList,
  faultShares,
  seededRandom,
  type Fault,
  type FaultScript,
} from './provider-faults.js';
export {
  startHttpCounterpart,
  type HttpAnswer,
  type HttpCounterpart,
  type HttpCounterpartOptions,
  type ReceivedRequest,
} from './provider-http.js';
export {
  startPushCounterpart,
  type PushCounterpart,
  type PushedMessage,
  type PushSubscription,
} from './provider-push.js';
export { loopbackCertificate } from './loopback-certificate.js';
export { startResendCounterpart, type ResendCounterpart } from './provider-resend.js';
export { startTwilioCounterpart, type TwilioCounterpart, type TwilioMessage } from './provider-twilio.js';
export { startSmppCounterpart, type SmppCounterpart, type SubmittedMessage } from './provider-smpp.js';
export {
  smtpFaultShares,
  startSmtpCounterpart,
  type SmtpCounterpart,
  type SmtpFault,
  type SmtpFaultScript,
  type SmtpMessage,
  type SmtpPhase,
} from './provider-smtp.js';
export { ManualClock } from './manual-clock.js';
export {
  checkQueueHistory,
  type QueueEnding,
  QueueRecord,
  recordQueueStore,
} from './queue-history-check.js';
