package model

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hone/internal/lazyregexp"
)

// sign is how servers report one class of fault. The first sign that matches decides.
type sign struct {
	kind Kind
	// words is a regular expression, for the message and the codes of an error in lower
	// case, separated by spaces.
	words string
	// only is the statuses to which the sign is limited, where a number below 10 means all that
	// begin with it; empty means that there is no limit. An error in the body of a success has
	// the status that its code gives, or 0.
	only []int
	// within limits the sign to errors that ask for a wait of at most that; 0 means that there is no limit.
	within time.Duration
	// source names servers that use the words, and where that is reported: an issue or a
	// pull request on GitHub, or the server's own documentation.
	source string
}

// rejected is the statuses with which servers reject a request, and refusing those of every
// refusal. What a server that fails (5xx) says is less to be believed: it may have the words of
// another class by chance.
var (
	rejected = []int{0, 400, 413, 422}
	refusing = []int{0, 4}
)

// words that more than one sign uses
const (
	outputField = `(max[_ ]?(completion[_ ]|output[_ ]|new[_ ])?tokens|maxoutputtokens|(completion|output) tokens|(in|for) the (completion|output)|maximum tokens you requested)`
	pressed     = `(\brate.?limit|[a-z]ratelimit|too many requests|throttl|\bper.(min|day)|\btpm\b|please wait|try again in)`
)

// signs is ordered: a message may have the words of several classes. An account without
// credit is reported with limits of tokens (OpenRouter), an output limit with the context
// that it exceeds (vLLM), and a limit for a minute with how to buy a higher one (OpenAI).
var signs = []sign{
	// A reply that cannot be used.
	{Blocked, `content_filter|content[ _]?(management )?policy|responsibleai|invalid_prompt|content exists risk|data_?inspection_?failed|inappropriate content|` +
		`requires moderation|flagged by|new_sensitive|violates? (our )?usage (guidelines|policy)|不安全或敏感`, refusing, 0,
		"Azure: Oaklight/argo-proxy#91, BerriAI/litellm#16231; DeepSeek: deepseek-ai/DeepSeek-V2#30; Qwen: QwenLM/qwen-code#2905; " +
			"OpenAI, OpenRouter, MiniMax, Zhipu, xAI: their documentation"},
	{Malformed, `tool_use_failed|failed to call a function|json_validate_failed|output_parse_failed|error parsing tool call|remaining in message header|harmonyerror`, []int{0, 4, 5}, 0,
		"Groq: groq/groq-typescript#103, anomalyco/opencode#1018, and its documentation; Ollama, status 500: ollama/ollama#17638; vLLM, status 500: vllm-project/vllm#51977"},

	// No credit. Waiting does not help.
	{Quota, `insufficient\w*_quota|exceeded_current_quota|billing_(error|hard_limit|not_active)|hard limit has been reached`, nil, 0,
		"OpenAI: platform.openai.com/docs/guides/error-codes; Moonshot: anomalyco/opencode#24462; one-api: songquanpeng/one-api#1270"},
	{RateLimited, pressed, []int{0, 400, 403, 429}, time.Minute,
		"OpenAI, with how to buy a higher limit: arc53/DocsGPT#287"},
	{Quota, `\bcredits?\b`, refusing, 0,
		"Anthropic: docs.claude.com/en/api/errors; OpenRouter: can1357/oh-my-pi#9569; xAI: continuedev/continue#10373, Wei-Shaw/sub2api#4069"},
	{Quota, `\b(insufficient|account|user|wallet|available|remaining|current|no|low|negative|enough|token|your)[ _]balance|\bbalance (is )?(insufficient|too low|not enough|exhausted|empty)|` +
		`\b(funds|arrear(s|age)|overdue|prepaid|recharge|top.?up|unpaid)\b`, refusing, 0,
		"DeepSeek: api-docs.deepseek.com/quick_start/error_codes; Moonshot: anomalyco/opencode#24462; Qwen: tencentmusic/supersonic#1572"},
	{Quota, `\b(spend(ing)?|usage|cost) limits?\b|\b(paid|premium|free) (request|tier|quota|allowance|plan).*(exceed|exhaust|used)|exceed.*premium`, refusing, 0,
		"xAI: warpdotdev/warp#14867; Fireworks: FerroxLabs/wayland#545; Copilot: microsoft/vscode-copilot-release#11836"},
	{Quota, `exceed\w* budget|\bbudget\w* (has been|was|is)? ?(exceeded|reached|exhausted)|budget_exceeded|over budget`, refusing, 0,
		"LiteLLM: open-webui/open-webui#5469, OWASP/OpenCRE#1102"},
	{Quota, `in good standing|payment (is )?required|\binvoices?\b|resource pack`, refusing, 0,
		"Qwen: infiniflow/ragflow#1552; Fireworks: pollinations/pollinations#12136; Zhipu: docs.z.ai/api-reference/api-code; Kimi: www.kimi.com/code/docs"},
	{Quota, `余额|充值|欠费|资源包|额度`, refusing, 0,
		"Zhipu: continuedev/continue#10296; new-api: QuantumNous/new-api"},
	{Quota, `\bcalls? / month|\bmonthly (limit|quota|allowance)`, refusing, 0,
		"Cohere, trial keys: docs.cohere.com/docs/rate-limits; Copilot: anomalyco/opencode#430"},
	{Quota, ``, []int{402}, 0, "all: RFC 9110"},

	// The context is full, although the words are those of another class.
	{TooLong, `max_tokens must be at least 1, got -|request too large for|extra usage is required for long context`, refusing, 0,
		"vLLM: vllm-project/vllm#36197; OpenAI and Groq, more in one request than in a minute: LibreChat-AI/agents#330; Anthropic: anomalyco/opencode#18853"},

	// The output limit is too large. Prompt and output together are weighed apart: see [kindOf].
	{OutputLimit, outputField + `.*(too (large|high|many)|exceed|at most|less than|must be|maximum|supported range|valid range|greater than|>|<=|非法|超)|` +
		`(exceed|at most|range of|valid range|maximum context|requested|reduce|decrease|lower|fewer).*` + outputField, rejected, 0,
		"DeepSeek: deepseek-ai/DeepSeek-V3#69; Groq: khoj-ai/khoj#1236; vLLM: vllm-project/vllm#42474; TGI: huggingface/transformers#28523; " +
			"Zhipu: lobehub/lobehub#1398; Ollama: DaviRain-Su/hyper-grok-build#44; Gemini: ai.google.dev/api; Anthropic: stackblitz/bolt.new#7414; " +
			"OpenRouter: openclaw/openclaw#85921; Cohere and Bedrock: their documentation"},

	// The context is full.
	{TooLong, `\bcontext[_ ](length|window|size|limit)|\bmax(imum)? context|exceed_context|\bn_ctx\b`, refusing, 0,
		"OpenAI and LiteLLM: earendil-works/pi#4563; vLLM: smol-ai/developer#7; llama.cpp: DraconDev/pi-goal-list-loop-audit#48; " +
			"Ollama: openclaw/openclaw#58839; OpenRouter: cline/cline#13194; Fireworks: ogx-ai/ogx#697; Together: stanford-crfm/helm#2079; LM Studio: anomalyco/opencode#2259"},
	{TooLong, `exceed\w*.{0,40}\bcontext[_ ](length|window|size|limit)|exceed_context|context_length_exceeded|maximum context length is \d|(prompt|input) is too (long|large)`, []int{5}, 0,
		"llama.cpp: DraconDev/pi-goal-list-loop-audit#48; LiteLLM: earendil-works/pi#4563"},
	{TooLong, `\b(prompt|input|request|messages?|conversation)\w* (is|are|was)? ?(too (long|large)|longer than|exceed)|prompt_too_long|request_too_large|string_above_max_length`, refusing, 0,
		"Anthropic: entropy-research/Devon#88; Bedrock: openclaw/openclaw#58839; Copilot: microsoft/vscode#293410; Zhipu: docs.bigmodel.cn/cn/api/api-code"},
	{TooLong, `\bmaximum (prompt|input) length|\b(input|prompt) length|model token limit|\btoken limit exceeded|max_prompt_tokens`, refusing, 0,
		"xAI: cline/cline#3120; Qwen: QwenLM/qwen-code#98; Moonshot: MoonshotAI/kimi-cli#2011; gateways: RhythmicWave/NovelForge#136"},
	{TooLong, `reduce the (length|size) of the|please reduce your (prompt|message)|shorten your|provide a shorter input`, refusing, 0,
		"Groq: langchain-ai/langchain#37533; OpenAI: smol-ai/developer#7; LM Studio: lmstudio-ai/lmstudio-bug-tracker#546; Copilot: microsoft/copilot-intellij-feedback#1289"},
	{TooLong, `keep the first \d+ tokens|tokens to keep from the initial prompt|longer than the model|too large for model with`, refusing, 0,
		"LM Studio: lmstudio-ai/lmstudio-bug-tracker#237, anomalyco/opencode#2259; Together, Mistral: earendil-works/pi#129"},
	{TooLong, `(上下文|输入|提示词?|prompt).*(超|过长|太长)`, refusing, 0,
		"Zhipu: docs.bigmodel.cn/cn/api/api-code; gateways: openclaw/openclaw#27068"},
	{RateLimited, pressed + `|resource_exhausted|rate_?limit`, []int{0, 400, 403, 413, 422, 429}, 0,
		"Bedrock: jin-bo/agentao#88; Azure: learn.microsoft.com/azure/ai-services/openai/quotas-limits; Gemini: su-kaka/gcli2api#416; Copilot: github/copilot-cli#793"},
	{TooLong, `(input|prompt|total|too many|number of).{0,20}tokens?.*(exceed|maximum|too|limit|greater|larger|longer)|must have less than \d+ tokens|too many tokens`, rejected, 0,
		"Gemini: ai.google.dev/api; Azure: BerriAI/litellm#15968; Cohere: openclaw/openclaw#58839; TGI: huggingface/text-generation-inference#695"},
	{TooLong, ``, []int{413}, 0, "all: RFC 9110; Anthropic: docs.claude.com/en/api/errors"},

	// Later, although the words are those of another class.
	{Overloaded, ``, []int{5}, maxAfter, "all: RFC 9110, Retry-After"},
	{Overloaded, `try again|\bretry\b|at the moment|at this time|right now|currently|temporar|momentar|not (yet )?ready|ready replica|\b(loading|scaling up|warming up|starting)\b|稍后`, []int{5}, 0,
		"all"},
	{Overloaded, `try again (later|in|after|shortly|soon)|at the moment|temporar|稍后`, []int{0}, 0, "all, inside streams"},

	// No such model.
	{NoModel, `(unknown|invalid|unsupported)[_ ]model|model_(not|decommission|deprecat)|no such model|deploymentnotfound|not found the model|model identifier is invalid|not a valid model`, []int{0, 400, 403, 404, 410, 422, 503}, 0,
		"OpenAI: Aider-AI/aider#2030; LiteLLM: BerriAI/litellm#3142; Groq: ItzCrazyKns/Vane#771; OpenRouter: continuedev/continue#10758; " +
			"new-api: QuantumNous/new-api#6310; Azure, Mistral, Moonshot, Bedrock: their documentation"},
	{NoModel, `\bmodel\b (\S+ )?is not supported|\bmodel\b.{0,100}?(not found|not exist|is not available|not deployed|decommissioned|unknown|不存在)|no available channel for model|对于模型.*无可用|模型.{0,20}不存在|unable to access (the )?model`, []int{0, 400, 403, 404, 410, 422, 503}, 0,
		"DeepSeek: deepwn/addi#13; Groq: BerriAI/litellm#5312; Zhipu: docs.bigmodel.cn/cn/api/api-code; new-api: QuantumNous/new-api#6915; " +
			"vLLM, Ollama, Fireworks, Together: their documentation"},
	{NoModel, `\bmodels?\b`, []int{404}, 0,
		"Gemini: ai.google.dev/api; Anthropic: docs.claude.com/en/api/errors; OpenRouter: Aculeasis/openrouter-proxy#3"},

	// The key.
	{Auth, `(api|access|secret)[ _-]?key|(authentication|permission)_(error|denied)|unauthenticated|unauthori[sz]ed|auth credentials|invalid (authentication|credentials)|令牌`, []int{0, 400, 401, 403}, 0,
		"Gemini: ai.google.dev/api, status 400; OpenRouter: openrouter.ai/docs/api-reference/errors; Anthropic: docs.claude.com/en/api/errors; new-api"},
	{Auth, `\bforbidden\b|\bnot (authenticated|authori[sz]ed|logged in)|\b(access|permission) (is )?denied|\b(invalid|expired|missing) (auth\w* |access |bearer |api )?token\b|\btoken (is |has )?(invalid|expired|missing)|未授权`, []int{0}, 0,
		"gateways, with status 200: lanqian528/chat2api#4, foxhui/WebAI2API#22"},
	{Auth, ``, []int{401, 403}, 0, "all: RFC 9110"},

	// Later.
	{RateLimited, ``, []int{429}, 0, "all: RFC 6585"},
	{RateLimited, `频率|限流|并发|concurren`, []int{0, 400}, 0, "Zhipu: docs.bigmodel.cn/cn/api/api-code"},
	{Overloaded, `overload|over capacity|\bbusy\b|temporar|unavailable|try again|timed? ?out|繁忙`, []int{0, 400}, 0, "Zhipu: docs.bigmodel.cn/cn/api/api-code; DeepSeek: api-docs.deepseek.com/quick_start/error_codes"},

	{Invalid, `invalid|not_found|bad.?request|unsupported`, []int{0}, 0, "OpenAI and Anthropic, inside streams: their documentation"},
}

var signWords = sync.OnceValue(func() (list []*regexp.Regexp) {
	for _, s := range signs {
		list = append(list, regexp.MustCompile(s.words))
	}
	return list
})

func (s sign) matches(status int, wait time.Duration) bool {
	of := func(n int) bool { return n == status || n < 10 && n == status/100 }
	return (len(s.only) == 0 || slices.ContainsFunc(s.only, of)) && (s.within == 0 || wait > 0 && wait <= s.within)
}

// namedWait finds a wait of seconds in the words of an error.
var namedWait = lazyregexp.New(`\b(?:try again|retry) (?:in|after) [\d.]+ ?(?:ms|s|sec|seconds?)\b`)

// text has the provider's words in lower case, and wait is what it asks for. It returns false if nothing says what the error is:
// then it counts as temporary inside a stream.
func kindOf(status int, wait time.Duration, text string) (kind Kind, known bool) {
	if wait == 0 && namedWait.MatchString(text) {
		wait = time.Second
	}
	for i, s := range signs {
		if s.matches(status, wait) && signWords()[i].MatchString(text) {
			if s.kind == OutputLimit && promptFills(text) {
				return TooLong, true
			}
			return s.kind, true
		}
	}
	switch {
	case status == 0, status >= 500, slices.Contains(passing, status):
		return Overloaded, false
	}
	return Invalid, false
}

// passing is the statuses below 500 that another attempt may change.
var passing = []int{408, 409, 424, 425, statusClientClosed}

var (
	contextFigure = lazyregexp.New(`(?:context (?:length|limit|size|window)|<=|>)\D{0,20}(\d+)`)
	promptFigure  = lazyregexp.New(`(\d+) (?:tokens )?(?:in the messages|in your prompt|in the prompt|of text input|input tokens|prompt tokens|tokens from the input|.inputs. tokens)|` +
		`(?:prompt contains|request has|messages resulted in|limit:)\D{0,20}(\d+)`)
)

// promptFills reports whether a prompt takes more than three quarters of the context in a
// message that tells both, so that a smaller output limit does not help for long.
func promptFills(text string) bool {
	text = strings.ReplaceAll(text, ",", "")
	number := func(r *lazyregexp.Regexp) float64 {
		n := 0.0
		for _, s := range append(r.FindStringSubmatch(text), "")[1:] {
			if f, err := strconv.ParseFloat(s, 64); err == nil {
				n = f
			}
		}
		return n
	}
	context, prompt := number(contextFigure), number(promptFigure)
	return context > 0 && prompt > context*3/4
}
