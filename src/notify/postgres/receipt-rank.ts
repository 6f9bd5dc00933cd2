/** Receipt statuses as ranks in SQL: a status only moves forward, whatever order the receipts come in. */
import { receiptStatuses } from '../notification.js';

const statuses = `array[${receiptStatuses.map((status) => `'${status}'`).join(', ')}]`;

/** The rank of a status; an unknown word ranks as nothing. */
export const receiptRank = (status: string): string => `coalesce(array_position(${statuses}, ${status}), 1)`;

/** The status of a rank. */
export const receiptRankOf = (rank: string): string => `(${statuses})[${rank}]`;
