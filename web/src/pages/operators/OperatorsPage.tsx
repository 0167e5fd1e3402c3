import { Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { isAdmin, me } from '@/api/queries'
import { EmptyCard } from '@/edit/Entries'
import { Loading, PageHeader } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { Audit } from './Audit'
import { Sessions } from './Sessions'
import { Tokens } from './Tokens'
import { Users } from './Users'

const tabs = ['users', 'tokens', 'sessions', 'audit']

/** Users, tokens, sessions, and what all of them did. */
export default function OperatorsPage() {
  const { data: who } = useQuery(me)
  const [tab, setTab] = useView('tab', 'users')
  if (!who) return <Loading />
  return (
    <>
      <PageHeader title={t.pages.operators} lead={t.operators.lead} />
      {!isAdmin(who.role) ? (
        <EmptyCard title={t.operators.adminsOnly}>{t.operators.adminsOnlyText}</EmptyCard>
      ) : (
        <Tabs value={tab} onChange={(v) => setTab(v ?? 'users')} keepMounted={false}>
          <Tabs.List mb="md">
            {tabs.map((x) => (
              <Tabs.Tab key={x} value={x}>
                {t.operators.tabs[x]}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          <Tabs.Panel value="users">
            <Users self={who.name ?? ''} />
          </Tabs.Panel>
          <Tabs.Panel value="tokens">
            <Tokens />
          </Tabs.Panel>
          <Tabs.Panel value="sessions">
            <Sessions />
          </Tabs.Panel>
          <Tabs.Panel value="audit">
            <Audit />
          </Tabs.Panel>
        </Tabs>
      )}
    </>
  )
}
