"""The grammar of a refusal: what is too large, that it is, and by what it is measured.

Providers reword their sentences often, and each gateway has its own. A sentence that no row of
``_wordings.py`` knows is an overflow if it names a conversation (or a part of one), says that it is
too much, and measures it as text: in tokens, as a length, against a window or a model. It is none if
it speaks of anything else that has a limit: time, money, rates, tools, files, an answer. In these
few words the languages are alike, so that each has a row.
"""

# ruff: noqa: E501, RUF001 - a pattern reads better whole; words are of many languages

import re

from fetchstash.client._numbers import MEDIA as _MEDIA
from fetchstash.client._rules import Rule

_SUBJECT = (
    r"(?:prompts?|inputs?|contexts?|messages?|conversations?|histor(?:y|ies)|chats?|dialog(?:ue)?s?|thread|transcripts?|session(?:_len)?|turns|requests?|quer(?:y|ies)|"
    r"texts?|tokens?|sequences?|seq_?len\w*|instructions?|n_(?:ctx|past|keep|tokens|prompt)\w*|window|kv size|you (?:have )?(?:sent|passed|gave))"
)
_OVER = (
    r"(?:exceed\w*|surpass\w*|overflow\w*|overr[au]n\w*|overshoot\w*|oversized?|overlong|over-?(?:limit|long)|over (?:the|its|your|our|by|a|\d)|above|beyond|out of range|outside (?:the|of)|past (?:the|its|what)|"
    r"(?:longer|larger|greater|bigger|higher|more|bulkier) (?:\w+ ){0,3}than|too (?:long|large|big|much|lengthy|great|high)|too many (?:\w+ ){0,2}(?:tokens|words|messages|turns)|"
    r"(?:not|n't|cannot|never|no longer|unable to|fails? to) (?:be )?(?:\w+ )?(?:fit|h[eo]ld|accommodate|process|handle|take|accept|contain|store|serve|read|squeeze)\w*|"
    r"no (?:\w+ ){0,2}(?:room|space|capacity)|(?:not enough|insufficient|lacks?) (?:\w+ ){0,2}(?:room|space|context|capacity|window)|needs more|\d ?x the|outgr\w+|out of (?:context|tokens|window|room|space)|"
    r"used up|exhaust\w*|deplet\w*|\bfull\b|in excess|(?:reach|hit|met)\w* (?:the |its |your |a )?(?:\w+ ){0,2}(?:limit|maximum|max|end|ceiling|cap|length)|"
    r"breach\w*|violat\w*|\d\)?(?: tokens)? ?(?:>|≥)=? ?\(?\w*[ =(]{0,2}\d|needs? \d[^\n]{0,40}\b(?:only|but|has|have|of)\b)"
)
_MEASURE = r"(?:tokens?|context|length|window|n_ctx|(?:seq|session|model|input|prompt)_?len\w*|kv|(?:prompt|input|message|sequence|conversation|history) size|too (?:long|lengthy)|fit|\bmodel\b)"
_STATED = r"(?:(?:only|at most|up to|no more than|not more than|limited to|restricted to|capped at|a maximum of|max(?:imum)?(?: is| of)?:?)[^\n\w]{1,3}(?:\w+ ){0,3}\d[\d.,]*[km]?[ -](?:\w+ ){0,2}tokens?)"
# Anything else that has a limit.
_ELSE = (
    r"\b(?:images?|pictures?|photos?|audio|videos?|files?|attachments?|uploads?|downloads?|pdfs?|pages?|tools?|functions?|schemas?|grammar|headers?|cookies?|urls?|uris?|links?|"
    r"names?|titles?|labels?|tags?|descriptions?|passwords?|emails?|metadata|batch\w*|stack|recursion|nest\w*|depth|redirects?|retries|attempts?|stop|enums?|properties|fields?|"
    r"parameters?|arguments?|items|entries|elements|objects|records|rows|columns|lines|keys?|ids?|arrays?|embed\w*|vectors?|dimensions?|iterations|choices|states|candidates|"
    r"outputs?|completions?|answers?|responses?|replies|generat\w*|max_(?:completion_|new_|output_)?tokens|budget\w*|thinking|reasoning|logprobs?|temperature|seed|samples?|beams?|"
    r"seconds?|minutes?|hours?|days?|ms|timeouts?|timed|deadline|(?:response|wall|cpu|run|wait\w*) time|time (?:limit|out|exceeded)|rate|quota|credits?|balance|plan|tier|cost|price|usage|total_tokens_limit|request_limit|"
    r"workers?|users?|connections?|sockets?|threads|processes|sessions|queues?|gpus?|cuda|vram|ram|(?:gpu|system|host|device|working) memory|out of memory|disk|storage|ttl|cached|"
    r"preempt\w*|stored in|scanner|minimum|at least|too (?:short|small|few)|fewer than|shorter than|empty|missing|expired?|invalid (?:json|utf|character|token)|parse|parsing|syntax|unknown|unsupported|not supported|derived|"
    r"token (?:is |was )?(?:invalid|malformed|revoked)|(?:csrf|jwt|access|auth\w*|bearer|refresh|session|api) tokens?|characters? (?:in|of) (?:a|the) \w+ name|already|locked|in progress|duplicate\w*)\b"
)

SUBJECT = re.compile(rf"\b{_SUBJECT}\b")
"""A conversation or a part of one."""

NO_PROMPT = re.compile(
    r"outputs?|completions?|\banswers?\b|responses?|repl(?:y|ies)|generat|max_(?:new_)?tokens|budget|thinking|reasoning|\bper\b|\brate\b|quota|credit|balance|usage|_limit of|"
    r"\bfiles?\b|attach|upload|(?<!\+ )(?<!and )\btools?\b|minimum|at least|too (?:short|small|few)|fewer than|\bcach|embed|\bbatch|invalid|\bused \d|today|retired|deprecated|renamed|removed|not found|does not exist|unavailable|remain|\bbetween\b|\bskip|truncat|\bcost|price|draft|"
    r"\b(?:search|voice|image|video|music|speech|audio) "
)
"""What else is counted in tokens, or limited, than a prompt."""

# Each look-ahead ends after 1,500 characters: gateways send whole pages of HTML as a reason.
ENGLISH = Rule(
    "grammar",
    "overflow_tokens",
    rf"^(?=.{{0,1500}}\b{_SUBJECT}\b)(?:(?=.{{0,1500}}{_OVER})(?=.{{0,1500}}\b{_MEASURE}\b)|(?=.{{0,1500}}\b{_STATED})(?=\D*\d[\d.,]*\D*$))",
    "the grammar of such sentences; no provider's own",
    "Your chat needs 12000 tokens, of which this deployment can take 8000.",
    unless=_ELSE,
)

# What is too large, and that it is; the unit and rates are below.
_LANGUAGES = {
    "German": (
        r"kontext\w*|prompt\w*|eingabe\w*|anfrage|nachrichten|verlauf|unterhaltung|gespräch",
        r"überschr\w+|übersteig\w+|zu (?:lang|groß|umfangreich)\w*|passt nicht|länger als|größer als|mehr als",
    ),
    "French": (
        r"contexte|invite|prompt|entrée|requête|messages?|conversation|historique",
        r"dépass\w+|excèd\w+|excéd\w+|trop (?:long|grand|volumineu)\w*|plus (?:long|grand)\w* que|supérieur\w*",
    ),
    "Spanish": (
        r"contexto|prompt|entrada|solicitud|mensajes?|conversaci[oó]n|historial|petición",
        r"super[aó]\w*|exced\w+|sobrepas\w+|demasiado (?:larg|grand|extens)\w+|más larg\w+ que",
    ),
    "Portuguese": (
        r"contexto|prompt|entrada|solicitação|mensage\w+|conversa\w*|histórico",
        r"exced\w+|ultrapass\w+|super[ao]\w*|(?:muito|demasiado) (?:long|grand|extens)\w+|longa? demais|maior (?:do )?que",
    ),
    "Italian": (
        r"contesto|prompt|richiesta|messaggi\w*|conversazion\w+|cronologia|input",
        r"super\w+|ecced\w+|troppo (?:lung|grand)\w+|oltre il",
    ),
    "Dutch": (
        r"context\w*|prompt|invoer|verzoek|berichten|gesprek|geschiedenis",
        r"overschr\w+|te (?:lang|groot)|langer dan|past niet",
    ),
    "Swedish, Danish, Norwegian": (
        r"kontext\w*|kontekst\w*|prompt\w*|inmatning\w*|meddeland\w+|samtal\w*|beskeder|samtale\w*|meldinger|inndata",
        r"överskrid\w+|överstig\w+|overskrid\w+|overstig\w+|för lång\w*|for lang\w*",
    ),
    "Polish": (
        r"kontekst\w*|prompt\w*|wejści\w+|zapytani\w+|wiadomości|rozmow\w+|konwersacj\w+|histori\w+",
        r"przekrocz\w+|przekracz\w+|(?:zbyt|za) (?:dług|duż)\w+",
    ),
    "Czech, Slovak": (
        r"kontext\w*|prompt\w*|vstup\w*|požadav\w+|zpráv\w*|správ\w*|konverzac\w+|histori\w+",
        r"překro\w+|prekro\w+|přesahuj\w+|presahuj\w+|příliš (?:dlouh|velk)\w+|príliš (?:dlh|veľk)\w+",
    ),
    "Russian": (
        r"контекст\w*|промпт\w*|запрос\w*|сообщени\w+|диалог\w*|истори\w+|токен\w*|ввод\w*",
        r"превы[шс]\w+|слишком \w+|больше (?:максим|допуст|лимит)\w+|не помеща\w+",
    ),
    "Ukrainian": (
        r"контекст\w*|промпт\w*|запит\w*|повідомлен\w+|діалог\w*|розмов\w+|токен\w*",
        r"перевищ\w+|(?:надто|занадто) \w+|завелик\w+|задовг\w+",
    ),
    "Turkish": (
        r"bağlam\w*|istem\w*|girdi\w*|giriş\w*|mesaj\w*|sohbet\w*|konuşma\w*|istek\w*|jeton\w*",
        r"aşıldı|aşıyor|aşt\w+|aşmakta\w*|çok (?:uzun|büyük)",
    ),
    "Vietnamese": (
        r"ngữ cảnh|lời nhắc|đầu vào|yêu cầu|tin nhắn|hội thoại|lịch sử|prompt",
        r"vượt(?: quá)?|quá (?:dài|lớn)",
    ),
    "Indonesian, Malay": (
        r"konteks\w*|prompt|masukan|input|permintaan|pesan|percakapan|riwayat|mesej|perbualan",
        r"melebihi|melampaui|terlalu (?:panjang|besar)",
    ),
    "Finnish": (
        r"konteksti\w*|syöt\w+|kehot\w+|pyyn\w+|viesti\w*|keskustelu\w*",
        r"ylit\w+|liian (?:pitk|suur)\w+",
    ),
    "Hungarian": (
        r"kontextus\w*|bemenet\w*|kérés\w*|üzenet\w*|beszélgetés\w*|prompt",
        r"meghalad\w+|túllép\w*|túl (?:hosszú|nagy)",
    ),
    "Romanian": (
        r"context\w*|prompt\w*|intrare\w*|cerere\w*|mesaj\w*|conversați\w+",
        r"depăș\w+|prea (?:lung|mare)\w*",
    ),
    "Greek": (
        r"πλαίσιο\w*|πλαισίου|προτροπή\w*|είσοδο\w*|εισόδου|μήνυμα\w*|μηνύματα|συνομιλία\w*|συνομιλίας",
        r"υπερβαίν\w+|ξεπερν\w+|υπέρβαση|πολύ μεγάλ\w+",
    ),
    "Arabic": (
        r"السياق|سياق|المدخلات?|الإدخال|المحادثة|الرسائل|الطلب|الرسالة",
        r"يتجاوز|تتجاوز|تجاوز\w*|طويل\w* (?:جد|للغاية)\w*|أطول من|أكبر من",
    ),
    "Hebrew": (r"הקשר|ההקשר|הקלט|השיחה|ההודעות|הבקשה", r"חורג\w*|חרג\w*|ארו(?:ך|כה) מ\w+"),
    "Persian": (r"زمینه|متن|ورودی|گفتگو|پیام\w*|درخواست", r"بیش از حد|فراتر|تجاوز|طولانی"),
    "Hindi": (r"संदर्भ|प्रॉम्प्ट|इनपुट|संदेश\w*|बातचीत|वार्तालाप|अनुरोध|टोकन", r"अधिक|बहुत (?:लंब|बड़)\w*|पार"),
    "Thai": (r"บริบท|พรอมต์|ข้อความ|อินพุต|การสนทนา|คำขอ", r"เกิน|ยาวเกินไป"),
    "Chinese": (
        r"上下文|历史|歷史|输入|輸入|提示词?|提示詞|消息|訊息|对话|對話|会话|會話|请求|請求|文本|长度|長度|tokens?|prompt|令牌|内容|內容",
        r"超出|超过|超過|超长|超長|超限|过长|過長|太长|太長|过大|過大|溢出|大于|大於|高于|放不下|装不下",
    ),
    "Japanese": (
        r"トークン|入力|プロンプト|コンテキスト|文脈|会話|メッセージ|履歴|リクエスト",
        r"超え\w*|超過|長すぎ\w*|大きすぎ\w*|オーバー|収まり?ま?せん|収まらな",
    ),
    "Korean": (
        r"토큰|컨텍스트|콘텍스트|입력|프롬프트|대화|메시지|요청|문맥",
        r"초과|넘\w+|너무 (?:길|많|깁|긴|큽|크)|벗어|보다 (?:길|깁|긴|크|큽|많)",
    ),
}
_TOO_MUCH = "|".join(
    rf"(?=.{{0,1500}}(?:{subject}))(?=.{{0,1500}}(?:{over}))"
    for subject, over in _LANGUAGES.values()
)
# Rates, money, answers, media and files, in as many languages.
_ELSEWHERE = (
    r"\b(?:в|pro|par|por|per|na|za|på|om|al) (?:минуту|час|день|сутки|minut\w*|stund\w*|tag|heure|jour|hora|día|dia|dzień|godzin\w+|menit|jam|hari|dag|dan|uur|ora|giorno|minuto)\b|"
    r"за (?:хвилину|годину|добу)|dakikada|saatte|günlük|mỗi (?:phút|giờ|ngày)|في (?:الدقيقة|الساعة|اليوم)|प्रति|ต่อ(?:นาที|วัน)|毎分|分あたり|1日|분당|일일|每分钟|每天|每小时|"
    r"ausgabe|antwort|sortie|réponse|salida|respuesta|saída|resposta|uscita|risposta|uitvoer|wyjści\w+|odpowied\w+|вывод\w*|ответ\w*|відповід\w+|çıktı|yanıt|đầu ra|keluaran|输出|輸出|回复|出力|応答|출력|응답|"
    r"max_(?:completion_|new_|output_)?tokens|rate.?limit|quota|kontingent|guthaben|solde|saldo|crédit\w*|créditos|баланс|лимит запросов|kota|kredi|额度|配额|余额|套餐|频率|速率|限流|并发|次数|クォータ|レート|할당량|요금|"
    r"bild\w*|images?|imágen\w*|imagen\w*|imagem|imagens|immagin\w+|afbeelding\w*|изображени\w+|зображен\w+|obraz\w*|görsel\w*|hình ảnh|gambar|图片|图像|圖片|画像|이미지|"
    r"datei\w*|fichier\w*|archivo\w*|arquivo\w*|plik\w*|файл\w*|dosya\w*|tệp|berkas|文件|ファイル|파일|名称|名前|이름|工具|函数|嵌套|passwor\w+|mot de passe|пароль|密码|"
    r"zeit\w*|délai|tiempo|tempo|час[ау]? очікування|время|süre|thời gian|超时|逾時|タイムアウト|시간"
)
OTHER_LANGUAGES = Rule(
    "grammar-languages",
    "overflow_tokens",
    rf"^(?:{_TOO_MUCH})",
    "gateways in other languages than English",
    "Độ dài ngữ cảnh vượt quá giới hạn của mô hình",
    unless=_ELSEWHERE,
)

BODY = Rule(
    "grammar-body",
    "overflow_bytes",
    rf"^(?=.{{0,1500}}\b(?:payload|(?:request|http|post|message) (?:body|data)|body|entity|content[- ]length)\b)(?=.{{0,1500}}{_OVER})(?=.{{0,1500}}\b(?:size|large|big|bytes|length|limit|[kmg]i?b|max\w*)\b)|"
    r"'(?:body|messages?|prompt|content|inputs?)' failed to satisfy constraint: member must have length less than or equal to \d",
    "the grammar of such sentences; the constraint is of AWS services",
    "A payload reached the size limit.",
    unless=r"\d tokens?\b|\b(?:(?:image|picture|screenshot)s? (?:payload|body|data)|schema|json (?:depth|nest\w*)|nest\w*|depth|fields?|seconds|ms|timeout|time|deadline|rate|quota|minute|decod\w*|name|header\w*)\b",
)

_NO_MEDIA = (
    r"\d tokens\b|\b(?:tokens?|knowledge|collection|librar(?:y|ies)|store|minutes?|hours?|seconds|secs?|ms|duration|fps|format\w*|decod\w*|downloads?\w*|fetch\w*|uploads?|generat\w*|edits?|variations?|names?|urls?|characters?|rate|quota|day|month|at least|minimum|too small|too few|"
    r"mime|corrupt\w*|invalid|unsupported|base64|detail|search|vector|embed\w*|index\w*|batch\w*|tools?|schema|columns?|rows?|timeouts?|pagination|page (?:size|number|token)|web ?pages?|results?)\b"
)
IN_MEDIA, NO_MEDIA = re.compile(rf"\b{_MEDIA}"), re.compile(_NO_MEDIA)
"""Pictures, documents and recordings, and what is said of them that no history changes."""

PICTURES = Rule(
    "grammar-media",
    "overflow_media",
    rf"^(?=.{{0,1500}}\b{_MEDIA})(?=.{{0,1500}}(?:{_OVER}|\btoo many\b|\b(?:at most|no more than|up to|limited to|restricted to|capped at|a maximum of|max(?:imum)?(?: is| of)?:?|only|allows?|accepts?|takes?|(?:may|can) (?:only )?(?:hold|have|carry|contain|include)) \d))"
    r"(?=.{0,1500}(?:\d|\btoo (?:many|large|big)\b))(?=.{0,1500}\b(?:request|message|prompt|conversation|turn|input|call|model|chat|one|each|per|too|exceed\w*|limit\w*)\b)",
    "the grammar of such sentences; no provider's own",
    "This conversation carries 31 screenshots, above the 24 that a request takes.",
    unless=_NO_MEDIA,
)

GRAMMAR = (PICTURES, BODY, ENGLISH, OTHER_LANGUAGES)
