"""Messages of the C library and of shells in languages other than English.

A node's language decides in which words its system tells that memory, disk or rights are missing; the rules
know the English ones. The translations are those of glibc and bash.
"""

from __future__ import annotations

import re

_WORDS = {
    "Permission denied": (
        "权限不够", "拒绝访问", "許可がありません", "허가 거부", "Keine Berechtigung",
        "Permission non accordée", "Permiso denegado", "Permissão negada", "Permesso negato",
        "Отказано в доступе", "Brak dostępu",
    ),
    "No space left on device": (
        "设备上没有空间", "设备空间不足", "デバイスに空き領域がありません", "장치에 남은 공간이 없음",
        "Auf dem Gerät ist kein Speicherplatz mehr verfügbar", "Aucun espace disponible sur le périphérique",
        "No queda espacio en el dispositivo", "Não há espaço disponível no dispositivo",
        "Spazio esaurito sul device", "На устройстве не осталось свободного места",
    ),
    "Cannot allocate memory": (
        "无法分配内存", "メモリを確保できません", "메모리를 할당할 수 없습니다",
        "Nicht genügend Hauptspeicher", "Impossible d'allouer de la mémoire", "No se pudo asignar memoria",
        "Não foi possível alocar memória", "Impossibile allocare memoria", "Невозможно выделить память",
    ),
    "Segmentation fault": (
        "段错误", "セグメンテーション違反", "세그멘테이션 오류", "Speicherzugriffsfehler",
        "Erreur de segmentation", "Violación de segmento", "Falha de segmentação",
        "Ошибка сегментирования", "Naruszenie ochrony pamięci",
    ),
    "Killed": ("已杀死", "強制終了", "Getötet", "Terminado (killed)", "Убито"),
    "Aborted": ("已放弃", "Abgebrochen", "Аварийный останов"),
    "command not found": (
        "未找到命令", "コマンドが見つかりません", "명령어를 찾을 수 없음", "Kommando nicht gefunden",
        "Befehl nicht gefunden", "commande introuvable", "orden no encontrada", "comando não encontrado",
        "команда не найдена", "nie znaleziono polecenia",
    ),
}  # fmt: skip
_ENGLISH = {word: english for english, words in _WORDS.items() for word in words}
_ANY = re.compile("|".join(map(re.escape, sorted(_ENGLISH, key=len, reverse=True))))
_IN_ASCII = [word for word in _ENGLISH if word.isascii()]


def in_english(text: str) -> str:
    """Return the text with the system's words in English; most lines are so already."""
    if text.isascii() and not any(word in text for word in _IN_ASCII):
        return text
    return _ANY.sub(lambda match: _ENGLISH[match[0]], text)
