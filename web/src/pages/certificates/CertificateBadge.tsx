import { StateBadge } from '@/ui/basics'
import { t } from '@/text'
import { meaningOfCertificate } from './orders'

/** The state of a certificate as a badge. */
export const CertificateBadge = ({ state, daysLeft }: { state: string; daysLeft?: number }) => (
  <StateBadge state={state} meaning={meaningOfCertificate(state, daysLeft)}>
    {t.certificates.word[state] ?? state}
  </StateBadge>
)
