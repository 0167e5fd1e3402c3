import { Tabs } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { isAdmin, me } from '@/api/queries'
import { EmptyCard } from '@/edit/Entries'
import { Loading, PageHeader } from '@/ui/basics'
import { useView } from '@/ui/view'
import { t } from '@/text'
import { Applications } from './Applications'
import { Links } from './Links'
import { People } from './People'
import { Sessions } from './Sessions'
import { Tokens } from './Tokens'

const tabs = ['applications', 'people', 'sessions', 'tokens', 'links']

/** Who passes the gates of applications, and how. Only admins change it; others see whom to ask. */
export default function AccessPage() {
  const { data: who } = useQuery(me)
  const [tab, setTab] = useView('tab', 'applications')
  if (!who) return <Loading />
  const may = isAdmin(who.role)
  const forAdmins = <EmptyCard title={t.access.adminsOnly}>{t.access.adminsOnlyText}</EmptyCard>
  return (
    <>
      <PageHeader title={t.pages.access} lead={may ? t.access.lead : `${t.access.lead} ${t.access.requiredLead}`} />
      <Tabs value={tab} onChange={(v) => setTab(v ?? 'applications')} keepMounted={false}>
        <Tabs.List mb="md">
          {tabs.map((x) => (
            <Tabs.Tab key={x} value={x}>
              {t.access.tabs[x]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        <Tabs.Panel value="applications">
          <Applications may={may} />
        </Tabs.Panel>
        <Tabs.Panel value="people">
          <People may={may} />
        </Tabs.Panel>
        <Tabs.Panel value="sessions">
          <Sessions may={may} />
        </Tabs.Panel>
        <Tabs.Panel value="tokens">{may ? <Tokens /> : forAdmins}</Tabs.Panel>
        <Tabs.Panel value="links">{may ? <Links /> : forAdmins}</Tabs.Panel>
      </Tabs>
    </>
  )
}
