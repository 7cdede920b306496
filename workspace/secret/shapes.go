package secret

import "slices"

// tokenForm is the form of tokens with one of the prefixes and a body of least to most bytes
// from a set.
type tokenForm struct {
	what, set   string
	least, most int
	prefixes    []string
}

// The sets of many tokens; see [chars].
const alnumSet, wordSet, urlSet, base64Set, hexSet = "a-zA-Z0-9", "a-zA-Z0-9_", "a-zA-Z0-9_-", "a-zA-Z0-9+/", "a-f0-9"

// tokenForms are the tokens that the guard knows. Issuers publish these facts. A new one needs a
// row in the test's table too.
var tokenForms = []tokenForm{
	{"an AWS access key", "A-Z2-7", 16, 16, []string{"AKIA", "ASIA", "ABIA", "ACCA"}},
	{"an AWS Bedrock key", base64Set, 109, 269, []string{"ABSK"}},
	{"an Alibaba access key", alnumSet, 20, 20, []string{"LTAI"}},
	{"a GitHub token", alnumSet, 36, 255, []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_"}},
	{"a GitHub token", wordSet, 60, 255, []string{"github_pat_"}},
	{"a GitLab token", urlSet, 20, 255, []string{"glpat-", "gldt-", "glrt-", "glptt-", "glagent-", "gloas-", "glcbt-", "glffct-", "glft-", "glimt-", "glsoat-", "GR1348941"}},
	{"a Bitbucket token", alnumSet, 28, 64, []string{"ATBB"}},
	{"an Atlassian token", "a-zA-Z0-9_=-", 60, 255, []string{"ATATT3", "ATCTT3"}},
	{"a Trello token", alnumSet, 72, 72, []string{"ATTA"}},
	{"a Slack token", urlSet, 24, 255, []string{"xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxe-", "xapp-"}},
	{"a Slack webhook", "a-zA-Z0-9/", 40, 120, []string{"hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/"}},
	{"a Discord webhook", "a-zA-Z0-9_/-", 70, 120, []string{"discord.com/api/webhooks/", "discordapp.com/api/webhooks/"}},
	{"a Teams webhook", "a-zA-Z0-9/@-", 100, 255, []string{"webhook.office.com/webhookb2/"}},
	{"a Stripe key", alnumSet, 20, 255, []string{"sk_live_", "rk_live_"}},
	{"a Stripe webhook secret", base64Set, 32, 64, []string{"whsec_"}},
	{"a Square token", urlSet, 22, 60, []string{"sq0atp-", "sq0csp-"}},
	{"a Google API key", urlSet, 35, 35, []string{"AIza"}},
	{"a Google client secret", urlSet, 24, 40, []string{"GOCSPX-"}},
	{"a Google access token", urlSet, 60, 1024, []string{"ya29."}},
	{"an OpenAI key", urlSet, 40, 255, []string{"sk-proj-", "sk-svcacct-", "sk-admin-"}},
	{"an Anthropic key", urlSet, 40, 255, []string{"sk-ant-"}},
	{"an OpenRouter key", hexSet, 64, 64, []string{"sk-or-v1-"}},
	{"an API key", alnumSet, 32, 64, []string{"sk-"}},
	{"a Perplexity key", alnumSet, 48, 48, []string{"pplx-"}},
	{"a Groq key", alnumSet, 52, 52, []string{"gsk_"}},
	{"an xAI key", alnumSet, 70, 100, []string{"xai-"}},
	{"a Replicate token", alnumSet, 37, 40, []string{"r8_"}},
	{"a Hugging Face token", alnumSet, 30, 40, []string{"hf_", "api_org_"}},
	{"a LangSmith key", wordSet, 40, 64, []string{"lsv2_pt_", "lsv2_sk_"}},
	{"a Pinecone key", wordSet, 40, 80, []string{"pcsk_"}},
	{"an npm token", alnumSet, 36, 36, []string{"npm_"}},
	{"a PyPI token", urlSet, 50, 1024, []string{"pypi-AgE"}},
	{"a RubyGems token", hexSet, 48, 48, []string{"rubygems_"}},
	{"a crates.io token", alnumSet, 32, 32, []string{"cio"}},
	{"a NuGet key", "a-z0-9", 43, 43, []string{"oy2"}},
	{"a Clojars token", alnumSet, 60, 60, []string{"CLOJARS_"}},
	{"an Artifactory key", alnumSet, 69, 69, []string{"AKCp"}},
	{"an Artifactory token", alnumSet, 59, 59, []string{"cmVmd"}},
	{"a Docker token", urlSet, 27, 40, []string{"dckr_pat_", "dckr_oat_"}},
	{"a Twilio key", hexSet, 32, 32, []string{"SK"}},
	{"a Brevo key", "a-zA-Z0-9-", 81, 81, []string{"xkeysib-"}},
	{"a DigitalOcean token", hexSet, 64, 64, []string{"dop_v1_", "doo_v1_", "dor_v1_"}},
	{"a Heroku token", urlSet, 58, 80, []string{"HRKU-AA"}},
	{"a Fly token", "a-zA-Z0-9+/=_,-", 80, 4096, []string{"fm2_", "fm1r_", "fm1a_"}},
	{"a Fly token", urlSet, 43, 43, []string{"fo1_"}},
	{"a Netlify token", alnumSet, 36, 40, []string{"nfp_"}},
	{"a Supabase token", hexSet, 40, 40, []string{"sbp_"}},
	{"a PlanetScale token", "a-zA-Z0-9_=.-", 32, 64, []string{"pscale_tkn_", "pscale_oauth_", "pscale_pw_"}},
	{"a Databricks token", hexSet, 32, 32, []string{"dapi"}},
	{"a ClickHouse key", alnumSet, 38, 38, []string{"4b1d"}},
	{"a Shopify token", "a-fA-F0-9", 32, 32, []string{"shpat_", "shpss_", "shpca_", "shppa_"}},
	{"a Vault token", urlSet, 60, 255, []string{"hvs.", "hvb."}},
	{"a Doppler token", alnumSet, 40, 44, []string{"dp.pt.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."}},
	{"a 1Password token", base64Set, 250, 4096, []string{"ops_eyJ"}},
	{"a Pulumi token", hexSet, 40, 40, []string{"pul-"}},
	{"a Prefect token", alnumSet, 36, 36, []string{"pnu_"}},
	{"a Tailscale key", urlSet, 20, 80, []string{"tskey-"}},
	{"a Linear key", alnumSet, 40, 40, []string{"lin_api_"}},
	{"a Linear token", hexSet, 64, 64, []string{"lin_oauth_"}},
	{"a Notion token", alnumSet, 40, 64, []string{"ntn_"}},
	{"a Notion token", alnumSet, 43, 43, []string{"secret_"}},
	{"a Figma token", urlSet, 40, 60, []string{"figd_"}},
	{"a Contentful token", urlSet, 43, 43, []string{"CFPAT-"}},
	{"a HubSpot token", "a-f0-9-", 36, 36, []string{"pat-na1-", "pat-na2-", "pat-eu1-"}},
	{"a Typeform token", "a-zA-Z0-9_.=-", 59, 60, []string{"tfp_"}},
	{"a Shippo token", hexSet, 40, 40, []string{"shippo_live_"}},
	{"a Duffel token", "a-zA-Z0-9_=-", 43, 43, []string{"duffel_live_"}},
	{"an EasyPost key", alnumSet, 54, 54, []string{"EZAK"}},
	{"a ReadMe key", alnumSet, 70, 70, []string{"rdme_"}},
	{"a Postman key", "a-f0-9-", 59, 59, []string{"PMAK-"}},
	{"a Sourcegraph token", wordSet, 40, 57, []string{"sgp_"}},
	{"a Sourcegraph token", hexSet, 64, 64, []string{"slk_"}},
	{"a SonarQube token", hexSet, 40, 40, []string{"squ_", "sqp_", "sqa_"}},
	{"a CircleCI token", wordSet, 50, 80, []string{"CCIPAT_"}},
	{"a Buildkite token", hexSet, 40, 40, []string{"bkua_"}},
	{"an Octopus key", "A-Z0-9", 26, 32, []string{"API-"}},
	{"an Okta token", urlSet, 40, 40, []string{"SSWS 00"}},
	{"an OpenShift token", urlSet, 43, 43, []string{"sha256~"}},
	{"a Grafana token", wordSet, 41, 41, []string{"glsa_"}},
	{"a Grafana token", "a-zA-Z0-9+/=", 32, 400, []string{"glc_"}},
	{"a Grafana key", "a-zA-Z0-9+/=", 70, 400, []string{"eyJrIjoi"}},
	{"a Sentry token", "a-zA-Z0-9+/=_", 80, 512, []string{"sntrys_"}},
	{"a Sentry token", hexSet, 64, 64, []string{"sntryu_"}},
	{"a New Relic key", alnumSet, 27, 32, []string{"NRAK-", "NRAA-"}},
	{"a New Relic key", urlSet, 32, 32, []string{"NRII-", "NRIQ-"}},
	{"an Adobe client secret", urlSet, 32, 32, []string{"p8e-"}},
	{"a Scalingo token", urlSet, 48, 48, []string{"tk-us-"}},
	{"a SettleMint token", alnumSet, 16, 16, []string{"sm_aat_", "sm_pat_", "sm_sat_"}},
	{"a Facebook token", alnumSet, 100, 300, []string{"EAAM", "EAAC"}},
	{"an age key", "A-Z0-9", 58, 58, []string{"AGE-SECRET-KEY-1"}},
}

func knownShapes() []shape {
	var list []shape
	for _, f := range tokenForms {
		for _, prefix := range f.prefixes {
			list = append(list, tokenOf(f.what, piece{}, prefix, piece{"", chars(f.set), f.least, f.most}))
		}
	}
	return slices.Concat(list, structured(), composed(), namedShapes())
}

// structured returns the shapes that are more than a prefix and a body.
func structured() []shape {
	return []shape{
		{what: "a private key", literals: []string{"-----BEGIN "}, find: findKeyBlock},
		{what: "a private key", literals: []string{"Private-Lines: "}, find: findPutty},
		{what: "a Telegram bot token", literals: []string{":AA"}, find: findTelegram},
		{what: "a JSON web token", literals: []string{"eyJ"}, find: findJWT},
		{what: "a URL with a password", literals: []string{"://"}, find: findURL},
		{what: "a Discord bot token", literals: []string{"MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"}, find: findDiscord},
	}
}
