"""Words with a meaning of their own.

These are numbers, calendar, units, and those that say nothing about a job.
"""

from __future__ import annotations


def _words(text: str) -> list[str]:
    return text.split()


UNITS = {
    word: value
    for value, word in enumerate(
        _words(
            """
            zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
            sixteen seventeen eighteen nineteen
            """
        )
    )
}
TENS = {
    word: 10 * value
    for value, word in enumerate(_words("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}
SCALES = {"hundred": 100, "thousand": 1000}
NUMBER_WORDS = {**UNITS, **TENS, "dozen": 12, "single": 1, "both": 2}

WEEKDAYS = {
    name: day
    for day, names in enumerate(
        ("monday mon", "tuesday tue tues", "wednesday wed", "thursday thu thur thurs", "friday fri",
         "saturday sat", "sunday sun")
    )
    for name in names.split()
}  # fmt: skip
MONTHS = {
    name: month
    for month, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul", "august aug",
         "september sept sep", "october oct", "november nov", "december dec"),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
SECONDS = {
    name: seconds
    for names, seconds in (
        ("minutes minute mins min", 60),
        ("hours hour hrs hr h", 3600),
        ("days day d", 86_400),
        ("weeks week wks wk", 604_800),
    )
    for name in names.split()
}

# Keywords that a typing error may not hide, and ordinary words that are not meant as one of them.
SPELLED = _words(
    """
    epochs epoch steps batch learning sequence length context tokens instruct budget deadline
    tomorrow tonight morning evening afternoon before until monday tuesday wednesday thursday friday
    saturday sunday january february march april august september october november december cheapest
    cheap cheaply fastest urgent adapter adapters validation validate accumulation gradient
    effective device precision weights euros hours minutes checkpointing within alpha float16
    bfloat16 quickly expensive balanced latest
    """
)
ORDINARY = frozenset(
    _words(
        """
    content contest contents leaning earning adapted adapts marsh matches patch notes stops steep
    cheat cheese devices validated effect morning's mondays fridays latest lately lest context texts
    lengthy weighs weighty house houses hour epic batches tokens token beforehand fastened fasten
    nightly tonite stepped learned learnings instructs instructed instructor urgently expensively
    alpaca alphabet marching untill
    """
    )
)

STOP_WORDS = frozenset(
    _words(
        """
    a about above across after again all also am an and any anyone anything are around arvo as at
    back be because been before being best better between both but by can come could did do does
    doing done down each either else enough ever every few for from further get gets getting give go
    goes going gonna good got great had half has have having he hello hence her here hey hi him his
    hope how however i id if ill im in into is isnt it its ive job jobs just keep know let lets like
    ll look lot made make makes making many may maybe me mean meant might mine model models more
    most much must my near need needed needs neither new next no nor not now of off ok okay on once
    one ones only onto or other our ours out over own per perhaps please possible pls plz prefer
    prepare put quite rather re really right run running runs s same say set setup shall she should
    so some something somewhere soon sorry start still stuff such sure t take taken than thank
    thanks that the their them then there these they thing things think this those though through
    thx till to together too toward towards train trained training try tune tuned tuning tuneup two
    under until up upon us use used using ve very via w wait want wants was way we well were what
    when where whether which while who whole whose why will wish with within without method
    tuning
    precision sharding wont work would wouldnt
    x yes yet you your yours fine finetune finetuned finetuning retrain data dataset file files kind
    kindly cheers regards dear team morning evening gday sft dont doesnt cant validate validation
    max tops step steps token tokens epoch epochs machine machines server servers hour hours minute
    minutes day days rank batch llm llms appreciate able ready finish finished latest deadline
    budget hurry gpu gpus node nodes cards card
    """
    )
)

# Kept out of matches between words and file names: they speak about any job.
GENERIC_IN_FILES = STOP_WORDS | frozenset(
    _words(
        """
    chat valid val validation eval evaluation test tests dev holdout small big large tiny old final
    clean cleaned raw full instruct base lora qlora misc sample samples jsonl json csv txt mini fast
    cheap answer answers
    """
    )
)

ELSEWHERE = {
    "deploy": "deploying", "serve": "serving", "host": "hosting", "merge": "merging", "dpo": "DPO",
    "rlhf": "RLHF",
    "ppo": "PPO", "grpo": "GRPO", "orpo": "ORPO", "mmlu": "benchmarks", "gsm8k": "benchmarks",
    "quantise": "exporting",
    "gguf": "exporting", "export": "exporting", "publish": "publishing", "distill": "distillation",
    "distil": "distillation", "pretrain": "pretraining", "pretraining": "pretraining", "rag": "retrieval",
}  # fmt: skip

# Small words that only sentences of these languages use; two of them, and more than English ones, decide.
FOREIGN = frozenset(
    _words(
        """
    bitte und mit auf der das ein eine einen einem ich wir mir uns bis für nicht soll sollte mein
    meine meinen unser unsere unseren auch aber wie kannst können möchte morgen früh trainieren
    trainiere danke über dem den im zu von sur avec pour les des une et je nous vous mon ma mes
    notre nos merci modèle données entraîner entraîne il faut s'il plaît d'ici demain avant le la du
    un ce cette peux peut el los las con por para una mi mis quiero modelo datos entrenar favor
    gracias mañana antes sobre em com meu minha nossos dados treinar treine até amanhã obrigado por
    um uma il lo gli per mio modello dati addestra addestrare entro domani grazie del della nel
    """
    )
)
ENGLISH = frozenset(
    _words(
        """
    the and with on of for by my our your train tune please in is it that this we you need want can
    at to a an before until not using use from under tomorrow
    """
    )
)
